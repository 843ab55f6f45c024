"""Fill in what people really want filled in: classes with a few fields, from a sentence as somebody writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from training.data import draw
from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, Tool, User
from training.data.fields import Field, kinds_of, object_schema
from training.data.requests import context, meant, typed_by_somebody
from training.data.scenario import Scenario, read, told
from training.data.schemas import of_a_class
from training.data.side import Side, Split, templates
from training.data.skills.everyday import errand_field
from training.data.skills.schema import asked_for, instruction
from training.data.stages import WIDER
from training.data.template import slots_of
from training.data.tools import crowd, make_tool
from training.data.world import World

_DATA = Path(__file__).parent.parent
_TRAIN = tuple(chain.from_iterable(read(each.read_text("utf-8")) for each in sorted((_DATA / "forms").glob("*.txt"))))
WIDE_FORMS = read((_DATA / "forms_wider.txt").read_text("utf-8"))
_HELD_OUT = read((_DATA / "forms_held_out.txt").read_text("utf-8"))

FORMS = Split(_TRAIN, _HELD_OUT)
"""Written as tools of everyday life are; a field ``address.street:street`` is one of an object inside."""

TEXTS = templates(*([told(ask)[0] for each in side for ask in each.asks] for side in (_TRAIN + WIDE_FORMS, _HELD_OUT)))

_LISTS, _MORE_LISTS = 0.12, 0.2  # of forms are for several at once, and of the others from stage WIDER on
_WIDER = 0.5  # of forms from stage WIDER on are of what only that has
_BARE, _BEHIND = 0.6, 0.15  # of texts stand alone, and follow a sentence that says nothing
_MORE = (0, 1, 2, 3)  # texts to learn from, for the same form


@dataclass(frozen=True)
class _Part:
    """A field, and the object inside the form that it belongs to."""

    field: Field
    group: str = ""  # in code


@dataclass(frozen=True)
class _Form:
    name: str
    noun: str
    description: str
    parts: tuple[_Part, ...]
    texts: tuple[str, ...]
    several: str = ""  # the name of a list of them, if it is one

    @property
    def schema(self) -> dict[str, Json]:
        """The form's own, or that of an object with a list of them."""
        if not self.several:
            return self._one()
        listed: dict[str, Json] = {"type": "array", "items": self._one()}
        return {"type": "object", "properties": {self.several: listed}, "required": [self.several]}

    def _one(self) -> dict[str, Json]:
        """Fields in their order, and behind them the objects inside."""
        fields: dict[str, list[Field]] = {}
        for each in self.parts:
            fields.setdefault(each.group, []).append(each.field)
        made = object_schema(fields.pop("", []))
        properties, required = made["properties"], made.setdefault("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise TypeError(f"expected the schema of an object, found {made!r}")
        for group, inner in fields.items():
            properties[group] = object_schema(inner)
            required.append(group)
        return made


def as_call(w: World) -> Conversation:
    """The class is a tool."""
    form = _drawn(w)
    tool = Tool(form.name, form.description, form.schema)
    beside = [] if w.chance(0.8) else crowd(w, [make_tool(w)], most=2)

    def turns() -> tuple[User | Model, ...]:
        arguments, text = _filled(w, form)
        return User(text), Model((Calls((Call(tool.name, arguments, "ok"),)),))

    tools = (tool, *(each.tool for each in beside))
    return Conversation("form", turns(), tools, "", ("as call",), _asides(w, turns), _kinds(form))


def as_json(w: World) -> Conversation:
    """The class's schema stands in the system turn, and the answer is JSON."""
    form = _drawn(w)
    system = instruction(of_a_class(form.schema, form.name, form.description))

    def turns() -> tuple[User | Model, ...]:
        arguments, text = _filled(w, form)
        answer = json.dumps(arguments, ensure_ascii=False)
        return User(text), Model((Say(answer, (answer,), exact=True),))

    return Conversation("form", turns(), (), system, ("as JSON",), _asides(w, turns), _kinds(form))


def _asides(w: World, turns: Callable[[], tuple[User | Model, ...]]) -> tuple[tuple[User | Model, ...], ...]:
    return tuple(turns() for _ in range(w.one(_MORE))) if w.side is Side.TRAIN else ()


def _kinds(form: _Form) -> dict[str, str]:
    return kinds_of([each.field for each in form.parts])


def _drawn(w: World) -> _Form:
    written: Scenario = w.one(WIDE_FORMS) if w.later(WIDER, _WIDER) else w.pick(FORMS)
    groups: dict[str, str] = {}
    parts = []
    for each in written.fields:
        group, dot, inside = each.partition(".")
        if dot and group not in groups:
            groups[group] = draw.label(tuple(group.split("_")), w)
        parts.append(_Part(errand_field(w, inside if dot else each), groups.get(group, "") if dot else ""))
    words = written.name.split("_")
    several = draw.plural(words[-1]) if w.chance(_LISTS) or w.later(WIDER, _MORE_LISTS) else ""
    words += ["list"] if several else []
    name = "".join(map(str.capitalize, words)) if w.chance(0.85) else "_".join(words)
    return _Form(name, " ".join(words), w.fill(written.description), tuple(parts), written.asks, several)


def _filled(w: World, form: _Form) -> tuple[dict[str, Json], str]:
    """What is to be filled in, and the text that says it."""
    filled, text = _several(w, form) if form.several else _once(w, form)
    if w.chance(_BEHIND):
        text = f"{context(w)} {text}"
    return filled, text if w.chance(_BARE) else asked_for(w, text, form.noun)


def _several(w: World, form: _Form) -> tuple[dict[str, Json], str]:
    """One or more, a sentence or a line for each."""
    once = [_once(w, form) for _ in range(w.one((1, 2, 2, 3)))]
    between = "\n" if w.chance(0.5) else " "
    texts = [text if between == "\n" or text[-1] in ".!?" else f"{text}." for _, text in once]
    return {form.several: [filled for filled, _ in once]}, between.join(texts)


def _once(w: World, form: _Form) -> tuple[dict[str, Json], str]:
    said, implied = told(w.one(form.texts))
    wanted = slots_of(said)
    values = {each.field.label: each.field.draw(w) for each in form.parts if each.field.label in wanted}
    said = typed_by_somebody(w, said) if w.side is Side.TRAIN else said
    text = w.fill(said, **{label: each.text for label, each in values.items()})
    filled: dict[str, Json] = {}
    inside: dict[str, dict[str, Json]] = {each.group: {} for each in form.parts if each.group}
    for each in form.parts:
        label = each.field.label
        if label in values or label in implied:
            into = inside[each.group] if each.group else filled
            into[each.field.name] = values[label].json if label in values else meant(each.field, implied[label])
    return filled | inside, text
