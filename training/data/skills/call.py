"""Call one tool: the right one, with exact arguments; then answer from its result."""

from __future__ import annotations

from training.data import draw
from training.data.conversation import Call, Calls, Conversation, Model, Say, User
from training.data.fields import field
from training.data.further import with_tools
from training.data.kinds import KINDS, STRINGS, Value, quoted
from training.data.requests import Request, request
from training.data.results import result
from training.data.side import Side
from training.data.stages import HANDS_ON
from training.data.tools import MadeTool, crowd, make_tool, subject
from training.data.world import World

_FOREIGN = ("cjk", "kana", "katakana", "hangul", "cyrillic", "arabic", "greek", "hebrew", "devanagari", "thai")
_MOST_LETTERS = ("cjk", "cjk", "arabic")  # the more letters there are, the more is to be learned
_QUOTED = 0.4  # of these, from stage HANDS_ON on
_TOLD_APART = tuple(kind for kind in STRINGS if kind != "message")  # it is quoted, so it shows

_ALIKE = tuple(kind for kind in KINDS if kind not in {"message", "phrase"})


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


def tell_apart(w: World) -> Conversation:
    """Several values, most of them without a label: each goes where its kind belongs, and none goes twice."""
    made = _of_several_kinds(w)

    def turns() -> tuple[User | Model, ...]:
        values = {each.name: each.draw(w) for each in made.fields if each.required or w.chance(0.5)}
        for name in values:
            if w.chance(0.2):
                values[name] = Value(foreign := draw.foreign(w, w.one(_FOREIGN)), foreign)
        return _turns(w, made, request(w, made, values))

    return with_tools(w, "values apart", turns(), crowd(w, [made], most=2), again=turns)


def _of_several_kinds(w: World) -> MadeTool:
    kinds = w.rng.sample(_TOLD_APART, w.one((2, 2, 2, 3)))
    noun, taken = subject(w), set[str]()
    fields = []
    for kind in kinds:
        made = field(w, noun, "use", taken, (kind,))
        while not made.hinted and w.chance(0.8):
            made = field(w, noun, "use", taken, (kind,))
        fields.append(made)
    return make_tool(w, noun=noun, fields=fields)


def told_by_label(w: World) -> Conversation:
    """Several values of one kind: nothing but their labels tells which is which."""
    kind, noun, taken = w.one(_ALIKE), subject(w), set[str]()
    made = make_tool(w, noun=noun, fields=[field(w, noun, "use", taken, (kind,)) for _ in range(w.one((2, 2, 2, 3)))])

    def turns() -> tuple[User | Model, ...]:
        values = {each.name: each.draw(w) for each in made.fields if each.required or w.chance(0.7)}
        return _turns(w, made, request(w, made, values))

    return with_tools(w, "values of a kind", turns(), crowd(w, [made], most=2), again=turns)


def copy_foreign(w: World) -> Conversation:
    """Names in scripts that are not Latin."""
    script = w.one(_FOREIGN)
    if w.side is Side.TRAIN and w.chance(0.3):
        script = w.one(_MOST_LETTERS)
    made = make_tool(w, count=w.rng.randint(1, 2), kinds=("person", "company", "title", "word"))

    def turns() -> tuple[User | Model, ...]:
        values = {each.name: each.draw(w) for each in made.fields}
        name = draw.foreign(w, script)
        values[made.fields[0].name] = quoted(w, name) if w.later(HANDS_ON, _QUOTED) else Value(name, name)
        return _turns(w, made, request(w, made, values))

    return with_tools(w, "foreign names", turns(), crowd(w, [made], most=3), ("script " + script,), again=turns)


def _turns(w: World, made: MadeTool, asked: Request) -> tuple[User | Model, ...]:
    got = result(w, made)
    steps = (
        Calls((Call(made.tool.name, asked.arguments, got.reply),)),
        Say(got.answer, got.facts),
    )
    return User(asked.text), Model(steps)
