"""More of the same: what is asked of the same tools after a conversation has shown its skill.

Tools take many tokens to declare and few to call, so a conversation that goes on teaches more with each token.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.requests import request
from training.data.results import brief, result
from training.data.side import Side
from training.data.skills.small_talk import exchange
from training.data.systems import system_line
from training.data.tools import MadeTool, make_tool
from training.data.world import World

DECLINE = Say("I have no tool for that.")

_MORE = (1, 3, 5, 8, 10, 14)  # requests


def with_tools(
    w: World, skill: str, turns: Sequence[User | Model], tools: Sequence[MadeTool], tags: tuple[str, ...] = ()
) -> Conversation:
    """A conversation beside these tools; in training, more is asked of them."""
    after = further(w, tools) if w.side is Side.TRAIN else []
    return Conversation(skill, (*turns, *after), tuple(each.tool for each in tools), system_line(w), tags)


def further(w: World, tools: Sequence[MadeTool]) -> list[User | Model]:
    """Some more requests, most of which one of the tools serves."""
    turns: list[User | Model] = []
    for _ in range(round(w.one(_MORE) * max(w.ease, 0.5))):
        form = w.rng.random()
        if form < 0.12:
            asked, answer = exchange(w)
            turns += [User(asked), Model((answer,), graded=False)]
        elif form < 0.28:
            turns += [User(request(w, missing(w, tools)).text), Model((DECLINE,), graded=False)]
        else:
            turns += served(w, w.one(tools), graded=False)
    return turns


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
