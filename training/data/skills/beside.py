"""What needs no tool, beside tools: an agent has its tools bound whatever is said to it."""

from __future__ import annotations

from dataclasses import replace

from training.data.conversation import Conversation
from training.data.fields import kinds_of
from training.data.skills import memory, system
from training.data.skills import personal as about_oneself
from training.data.skills.everyday import errand
from training.data.tools import MadeTool, crowd, make_tool
from training.data.world import World

_ERRANDS = 0.6  # of conversations are beside tools of everyday life
_MOST = 6
_KEEPS = ("contact", "note", "remember", "save", "member", "profile", "user", "who", "person")  # would be a fit


def remember(w: World) -> Conversation:
    """What was said earlier."""
    return _with_tools(w, memory.remember(w))


def personal(w: World) -> Conversation:
    """What somebody says of themselves."""
    return _with_tools(w, about_oneself.personal(w))


def follow(w: World) -> Conversation:
    """The system line."""
    return _with_tools(w, system.follow(w))


def _with_tools(w: World, made: Conversation) -> Conversation:
    tools = _errands(w) if w.chance(_ERRANDS) else crowd(w, [make_tool(w)], most=_MOST)
    kinds = kinds_of([field for each in tools for field in each.fields])
    return replace(made, tools=tuple(each.tool for each in tools), kinds=kinds)


def _errands(w: World) -> list[MadeTool]:
    """Some, none of which might be meant when somebody tells something."""
    found: dict[str, MadeTool] = {}
    for _ in range(w.rng.randint(1, _MOST)):
        made = errand(w)
        about = f"{made.tool.name} {made.tool.description}".lower()
        if not any(each in about for each in _KEEPS):
            found.setdefault(made.tool.name.lower(), made)
    return list(found.values()) or crowd(w, [make_tool(w)], most=1)
