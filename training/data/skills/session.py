"""A long conversation: one thing after another with the same tools, and at the end something from its beginning."""

from __future__ import annotations

from training.data.conversation import Conversation, Model, User
from training.data.fields import kinds_of
from training.data.further import served
from training.data.skills.memory import ask, tell
from training.data.skills.small_talk import exchange
from training.data.systems import system_line
from training.data.tools import MadeTool, make_tool
from training.data.world import World


def session(w: World) -> Conversation:
    """Up to fourteen requests; what is graded comes last."""
    tools = _tools(w, w.rng.randint(1, 2 + round(w.one((1, 1, 4)) * w.ease)))
    told, what, text = tell(w)
    turns: list[User | Model] = [*told]
    most = w.one((3, 3, 5, 14))  # many short ones: a tool that is declared once is practised several times
    for _ in range(w.rng.randint(2, max(2, round(most * w.ease)))):
        if w.chance(0.2):
            asked, answer = exchange(w)
            turns += [User(asked), Model((answer,), graded=False)]
        else:
            turns += served(w, w.one(tools), graded=False)
    turns += ask(w, what, text) if w.chance(0.5) else served(w, w.one(tools))
    w.rng.shuffle(tools)
    kinds = kinds_of([field for each in tools for field in each.fields])
    made = tuple(each.tool for each in tools)
    return Conversation("session", tuple(turns), made, system=system_line(w), kinds=kinds)


def _tools(w: World, count: int) -> list[MadeTool]:
    """Tools that share neither a name nor a noun."""
    tools: list[MadeTool] = []
    while len(tools) < count:
        made = make_tool(w)
        if all(made.tool.name.lower() != each.tool.name.lower() and made.noun != each.noun for each in tools):
            tools.append(made)
    return tools
