"""Call one tool: the right one, with exact arguments; then answer from its result."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.further import with_tools
from training.data.kinds import Value
from training.data.requests import Request, request
from training.data.results import result
from training.data.side import Side
from training.data.tools import MadeTool, crowd, make_tool
from training.data.world import World

_FOREIGN = ("cjk", "kana", "katakana", "hangul", "cyrillic", "arabic", "greek", "hebrew", "devanagari", "thai")
_MOST_LETTERS = ("cjk", "cjk", "arabic")  # the more letters there are, the more is to be learned


def one_call(w: World) -> Conversation:
    """A few tools, one request."""
    made = make_tool(w)
    asked, tools = request(w, made), crowd(w, [made], most=3)
    return with_tools(w, "single call", _turns(w, made, asked), tools)


def right_tool(w: World) -> Conversation:
    """Many tools, one request."""
    made = make_tool(w)
    tools = crowd(w, [made], least=8 if w.chance(0.4) else 1)
    tags = (f"{len(tools)} tools",)
    return with_tools(w, "right tool", _turns(w, made, request(w, made)), tools, tags)


def nothing_to_fill_in(w: World) -> Conversation:
    """The right tool needs nothing, whatever the others need: nothing is made up, and nothing asked for."""
    made = make_tool(w, count=w.rng.randint(0, 2))
    while any(each.required for each in made.fields):
        made = make_tool(w, count=w.rng.randint(0, 2))
    tools = crowd(w, [made], least=8 if w.chance(0.3) else 1)
    return with_tools(w, "nothing to fill in", _turns(w, made, request(w, made, {})), tools)


def copy_foreign(w: World) -> Conversation:
    """Names in scripts that are not Latin."""
    script = w.one(_FOREIGN)
    if w.side is Side.TRAIN and w.chance(0.3):
        script = w.one(_MOST_LETTERS)
    made = make_tool(w, count=w.rng.randint(1, 2), kinds=("person", "company", "title", "word"))

    def turns() -> tuple[User | Model, ...]:
        values = {each.name: each.draw(w) for each in made.fields}
        name = draw.foreign(w, script)
        values[made.fields[0].name] = Value(name, name)
        return _turns(w, made, request(w, made, values))

    return with_tools(w, "foreign names", turns(), crowd(w, [made], most=3), ("script " + script,), again=turns)


def _turns(w: World, made: MadeTool, asked: Request) -> tuple[User | Model, ...]:
    got = result(w, made)
    steps = (
        Calls((Call(made.tool.name, asked.arguments, got.reply),)),
        Say(got.answer, got.facts),
    )
    return User(asked.text), Model(steps)
