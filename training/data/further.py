"""More of the same: what else is asked of the tools of a conversation.

Tools take many tokens to declare and few to call, so a conversation with more requests teaches more with each token.
Most are asides: a tool that was called before is easily called again, and what is hard is its first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.fields import kinds_of
from training.data.requests import request
from training.data.results import brief, result
from training.data.side import Side
from training.data.skills.small_talk import exchange
from training.data.systems import system_line
from training.data.tools import MadeTool, make_tool
from training.data.world import World

DECLINE = Say("I have no tool for that.")

_ASIDE = 0.85  # of conversations have asides; the others go on where they end
_ASIDES = (4, 6, 8, 12, 16)
_AGAIN = 0.5  # of asides show what the conversation itself shows
_CALL_ALONE = 0.75  # of calls in asides come without a result, which leaves room for more of them
_MORE = (1, 3, 5, 8)  # requests

Turns: TypeAlias = "Sequence[User | Model]"


def with_tools(
    w: World,
    skill: str,
    turns: Turns,
    tools: Sequence[MadeTool],
    tags: tuple[str, ...] = (),
    again: Callable[[], Turns] | None = None,
) -> Conversation:
    """A conversation beside these tools; in training, more is asked of them.

    ``again`` makes turns that show the same once more.
    """
    after: list[User | Model] = []
    asides: list[tuple[User | Model, ...]] = []
    if w.side is Side.TRAIN and w.chance(_ASIDE):
        for _ in range(round(w.one(_ASIDES) * max(w.ease, 0.5))):
            aside = again() if again and w.chance(_AGAIN) else further(w, tools)
            asides.append(_called(aside) if w.chance(_CALL_ALONE) else tuple(aside))
    elif w.side is Side.TRAIN:
        for _ in range(round(w.one(_MORE) * max(w.ease, 0.5))):
            after += further(w, tools)
    made = tuple(each.tool for each in tools)
    kinds = kinds_of([field for each in tools for field in each.fields])
    return Conversation(skill, (*turns, *after), made, system_line(w), tags, tuple(asides), kinds)


def further(w: World, tools: Sequence[MadeTool]) -> list[User | Model]:
    """One more request, which one of the tools serves, or none."""
    form = w.rng.random()
    if form < 0.08:
        asked, answer = exchange(w)
        return [User(asked), Model((answer,), graded=False)]
    if form < 0.22:
        return [User(request(w, missing(w, tools)).text), Model((DECLINE,), graded=False)]
    return served(w, w.one(tools), graded=False)


def _called(turns: Turns) -> tuple[User | Model, ...]:
    """All up to the last call, if there is one."""
    *before, last = turns
    if not isinstance(last, Model):
        return tuple(turns)
    steps = last.steps
    while len(steps) > 1 and isinstance(steps[-1], Say):
        steps = steps[:-1]
    return (*before, Model(steps, last.graded))


def served(w: World, made: MadeTool, *, graded: bool = True) -> list[User | Model]:
    """One request, its call, and the answer."""
    asked = request(w, made)
    got = result(w, made) if graded or w.chance(0.5) else brief(w)  # what is short leaves room for more requests
    steps = (Calls((Call(made.tool.name, asked.arguments, got.reply),)), Say(got.answer, got.facts))
    return [User(asked.text), Model(steps, graded)]


def missing(w: World, tools: Sequence[MadeTool]) -> MadeTool:
    """A tool that none of these can stand in for."""
    while True:
        verb = w.one(tools).verb if w.chance(0.5) else None  # it may do the same, to something else
        made = make_tool(w, verb=verb)
        if not any(made.noun in f"{each.noun} {each.tool.description}" or each.noun in made.noun for each in tools):
            return made
