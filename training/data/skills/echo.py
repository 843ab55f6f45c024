"""Say after me: copying and nothing else, which everything else is built on."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Conversation, Model, Say, User
from training.data.kinds import KINDS
from training.data.side import templates
from training.data.wild import put
from training.data.world import World

_ASKED = templates(
    [
        "Repeat after me: {text}",
        'Say "{text}".',
        "Repeat: {text}",
        "Say this again: {text}",
        'Echo "{text}"',
        "{text}\nRepeat that.",
        "Repeat this: {text}",
        "Copy this: {text}",
        "Please say: {text}",
        "Answer with {text}",
        'Your answer has to be "{text}".',
        "Now say {text}",
        "Say the following: {text}",
        "{text}\nSay this.",
        "Parrot: {text}",
        'Give me back "{text}".',
        "Once more: {text}",
        "Print {text}",
        "Reply with this text: {text}",
        "Say after me: {text}",
        'I say "{text}", you say it too.',
        "Type {text}",
        "The words are: {text}\nSay them.",
    ],
    held_out=["Tell me exactly this: {text}", 'Write "{text}" back to me.'],
)

_FORMS = ("~: {text}", '~"{text}" ~', '~: "{text}"')


def echo(w: World) -> Conversation:
    """One to three texts, each said again as it was."""
    turns: list[User | Model] = []
    for _ in range(w.rng.randint(1, 3)):
        text = _text(w)
        turns += [User(put(w, _ASKED, _FORMS, text=text)), Model((Say(text, (text,), exact=True),))]
    return Conversation("echo", tuple(turns))


def _text(w: World) -> str:
    form = w.rng.random()
    if form < 0.4:
        return w.one(list(KINDS.values())).draw(w)
    if form < 0.6:
        return draw.foreign(w)
    return w.one([" ", ", "]).join(w.one([w.made_up, lambda: draw.noun(w)])() for _ in range(w.rng.randint(2, 8)))
