"""Remember what was said earlier in the conversation."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Conversation, Model, Say, User
from training.data.kinds import KINDS
from training.data.side import split, templates
from training.data.skills.small_talk import exchange
from training.data.stages import FULLER
from training.data.ways import ways
from training.data.wild import put
from training.data.words import things
from training.data.world import World

_ABOUT = split(
    """name:person, brother:person, sister:person, boss:person, best friend:person, home town:place, city:place,
    office:place, company:company, locker code:code, member number:code, favourite word:word, project:title, boat:title,
    phone number:phone, e-mail address:email, lucky number:count, start date:date, new street:street, hobby:topic""",
    held_out="""neighbour:person, cousin:person, hideout:place, employer:company, badge number:code, cottage:title,
    thesis:topic""",
)
_TOLD = templates(
    [
        "My {what} is {v}.",
        "[Hi, |]my {what} is {v}.",
        "Remember that my {what} is {v}.",
        "By the way, my {what} is {v}.",
        "{v} is my {what}.",
        "Please note: my {what} is {v}.",
        "[Just so you know|FYI], my {what} is {v}.",
        "I want you to know my {what}: {v}.",
        "My {what}? It's {v}.",
        "My {what}: {v}",
        "As my {what} I have {v}.",
        "[Remember|Note|Save] my {what}, it is {v}.",
        "You should know that {v} is my {what}.",
        "Let me tell you my {what}: {v}.",
        "I call {v} my {what}.",
        "{v}: that is my {what}.",
        "My new {what} is {v}.",
        "Did I say that my {what} is {v}?",
        "Everybody knows my {what} is {v}.",
    ],
    held_out=["Keep in mind that my {what} is {v}.", "For the record, {v} is my {what}."],
    later={FULLER: ways("told")},
)
_TOLD_FORMS = ("~my {what} ~{v}.", "~{v} ~my {what} ~")
_ASKED_FORMS = ("~my {what} ~?", "~my {what} ~")
_NOTED = templates(
    ["Noted: your {what} is {v}."],
    held_out=["Understood, your {what} is {v}."],
)
_ASKED = templates(
    [
        "What is my {what}?",
        "What's my {what}?",
        "Do you remember my {what}?",
        "Tell me my {what}.",
        "Which {what} did I give you?",
        "Remind me of my {what}.",
        "What did I say my {what} is?",
        "my {what}?",
        "And my {what}?",
        "I forgot my {what}.",
        "Which {what} is mine?",
        "What was my {what}?",
        "Say my {what}.",
        "You know my {what}, don't you?",
        "I need my {what} [now|again].",
        "Give me my {what}.",
        "My {what} please.",
        "Do you know my {what}?",
        "Have you noted my {what}?",
        "What {what} do I have?",
    ],
    held_out=["Can you recall my {what}?", "So what was my {what} again?"],
    later={FULLER: ways("asked for")},
)
_RECALLED = templates(["Your {what} is {v}."], held_out=["Your {what}: {v}."])
_UNKNOWN = "You have not told me that."


def remember(w: World) -> Conversation:
    """One to three things are told; one is asked for, at times one that was never told."""
    known: dict[str, str] = {}
    turns: list[User | Model] = []
    for _ in range(w.rng.randint(1, 3)):
        exchanged, what, text = tell(w)
        if what in known:
            continue
        known[what] = text
        turns += exchanged
        if w.chance(0.3):
            asked, answer = exchange(w)
            turns += [User(asked), Model((answer,), graded=False)]
    if w.chance(0.12):
        while (unknown := _fact(w)[0]) in known:
            pass
        answer = Say(_UNKNOWN, (_UNKNOWN,))
        return Conversation("memory", (*turns, User(w.say(_ASKED, what=unknown)), Model((answer,))), tags=("not told",))
    what = w.one(list(known))
    return Conversation("memory", (*turns, *ask(w, what, known[what])))


def tell(w: World) -> tuple[list[User | Model], str, str]:
    """An exchange in which something is told; what it is called, and what it is."""
    what, text = _fact(w)
    noted = Model((Say(w.say(_NOTED, what=what, v=text), (text,)),), graded=False)
    return [User(put(w, _TOLD, _TOLD_FORMS, what=what, v=text)), noted], what, text


def ask(w: World, what: str, text: str) -> list[User | Model]:
    """An exchange in which it is asked for."""
    return [
        User(put(w, _ASKED, _ASKED_FORMS, what=what)),
        Model((Say(w.say(_RECALLED, what=what, v=text), (text,)),)),
    ]


def _fact(w: World) -> tuple[str, str]:
    what, _, kind = w.pick(_ABOUT).partition(":")
    if w.chance(0.25):
        what = f"{w.pick(things.MODIFIERS)} {draw.noun(w)}"
        kind = "word"
    return what, KINDS[kind].draw(w)
