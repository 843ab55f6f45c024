"""Call one tool: the right one, with exact arguments; then answer from its result."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.further import with_tools
from training.data.requests import Request, request
from training.data.results import result
from training.data.tools import MadeTool, crowd, make_tool
from training.data.world import World

_FOREIGN = ("cjk", "kana", "katakana", "hangul", "cyrillic", "arabic", "greek", "hebrew", "devanagari", "thai")


def one_call(w: World) -> Conversation:
    """A few tools, one request."""
    made = make_tool(w)
    return _conversation(w, "single call", made, request(w, made), crowd(w, [made], most=3))


def right_tool(w: World) -> Conversation:
    """Many tools, one request."""
    made = make_tool(w)
    tools = crowd(w, [made], least=8 if w.chance(0.4) else 1)
    tags = (f"{len(tools)} tools",)
    return _conversation(w, "right tool", made, request(w, made), tools, tags)


def copy_foreign(w: World) -> Conversation:
    """Names in scripts that are not Latin."""
    script = w.one(_FOREIGN)
    made = make_tool(w, count=w.rng.randint(1, 2), kinds=("person", "company", "title", "word"))
    kind = made.fields[0]
    values = {each.name: each.draw(w) for each in made.fields}
    name = draw.foreign(w, script)
    values[kind.name] = type(values[kind.name])(name, name)
    return _conversation(
        w, "foreign names", made, request(w, made, values), crowd(w, [made], most=3), ("script " + script,)
    )


def _conversation(
    w: World, skill: str, made: MadeTool, asked: Request, tools: list[MadeTool], tags: tuple[str, ...] = ()
) -> Conversation:
    got = result(w, made)
    steps = (
        Calls((Call(made.tool.name, asked.arguments, got.reply),)),
        Say(got.answer, got.facts),
    )
    return with_tools(w, skill, (User(asked.text), Model(steps)), tools, tags)
