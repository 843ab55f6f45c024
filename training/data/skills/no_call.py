"""Tools are there, and none of them fits: say so, or just talk."""

from __future__ import annotations

from training.data.conversation import Conversation, Model, User
from training.data.further import DECLINE, missing, with_tools
from training.data.requests import request
from training.data.skills.everyday import everyday
from training.data.skills.small_talk import exchange
from training.data.tools import crowd, make_tool
from training.data.world import World


def no_tool_fits(w: World) -> Conversation:
    """The tool that was asked for is not there."""
    wanted = make_tool(w)
    tools = [each for each in crowd(w, [wanted]) if each is not wanted and wanted.noun not in each.tool.description]
    tools = tools or [missing(w, [wanted])]
    asked = everyday(w).turns[0] if w.chance(0.2) else User(request(w, wanted).text)
    return with_tools(w, "no call", (asked, Model((DECLINE,))), tools, ("none fits",))


def talk_beside_tools(w: World) -> Conversation:
    """Small talk, with tools bound all the same."""
    asked, answer = exchange(w)
    return with_tools(w, "no call", (User(asked), Model((answer,))), crowd(w, [make_tool(w)]), ("talk",))
