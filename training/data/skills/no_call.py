"""Tools are there, and none of them fits: say so, or just talk."""

from __future__ import annotations

from training.data.conversation import Conversation, Model, Say, User
from training.data.skills.everyday import everyday
from training.data.skills.small_talk import exchange
from training.data.systems import system_line
from training.data.tools import crowd, make_tool, request
from training.data.world import World

_DECLINE = "I have no tool for that."


def no_tool_fits(w: World) -> Conversation:
    """The tool that was asked for is not there."""
    missing = make_tool(w)
    tools = tuple(tool for tool in crowd(w, [missing]) if tool.name != missing.tool.name)
    near = [tool for tool in tools if missing.noun in tool.description]
    if not tools or near:
        other = make_tool(w)
        tools = tuple(tool for tool in tools if tool not in near) or (other.tool,)
    asked = everyday(w).turns[0] if w.chance(0.2) else User(request(w, missing).text)
    return Conversation("no call", (asked, Model((Say(_DECLINE),))), tools, tags=("none fits",), system=system_line(w))


def talk_beside_tools(w: World) -> Conversation:
    """Small talk, with tools bound all the same."""
    asked, answer = exchange(w)
    return Conversation(
        "no call", (User(asked), Model((answer,))), crowd(w, [make_tool(w)]), tags=("talk",), system=system_line(w)
    )
