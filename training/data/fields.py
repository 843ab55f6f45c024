"""Fields of tools and schemas: a name, a JSON schema, values, and how a request mentions them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from training.data import draw, phrases
from training.data.conversation import Json
from training.data.kinds import ANY_WORDS, KINDS, NUMBERS, STRINGS, Kind, Value, value
from training.data.mentions import MENTIONS
from training.data.side import Side
from training.data.stages import LIFELIKE
from training.data.template import expand
from training.data.wild import maybe, put
from training.data.words import things
from training.data.world import World

_REQUIRED = {Side.TRAIN: 0.7, Side.HELD_OUT: 0.85}  # what nobody mentioned is made up easily: more to leave out
_LEFT_OUT = 0.2  # of those that training requires are optional after all, in the last stage
_NULLABLE = 0.6  # of optional fields
_NEW_LABELS = 0.3  # in training: those in lists are few enough to be known by heart


@dataclass(frozen=True)
class Field:
    """One property of a tool's parameters or of a schema."""

    name: str  # in code
    label: str  # in words
    schema: dict[str, Json]
    required: bool
    draw: Callable[[World], Value]
    typed: tuple[str, ...] = ()  # templates that mention a value without the label
    said: Callable[[World, Value], str] | None = None  # how a value is mentioned, where it is neither typed nor keyed
    hinted: bool = False  # the schema tells what kind of value it is
    before: bool = False  # a value can stand before the noun: "a blue lamp"
    plain: bool = False  # a value does not show of which kind it is
    kind: str = ""  # of its values, where its name or its schema tells


def field(w: World, noun: str, verb: str, taken: set[str], kinds: tuple[str, ...] | None = None) -> Field:
    """A field whose name is not taken yet; ``kinds`` limits it to plain values of these kinds."""
    while True:
        made = _plain(w, noun, verb, w.one(kinds)) if kinds else _any(w, noun, verb)
        key = made.name.lower().replace("_", "").replace("-", "")
        if key not in taken:
            taken.add(key)
            return nullable(w, made)


def nullable(w: World, made: Field) -> Field:
    """The field as most people write one that is optional: it may be null."""
    if not made.required and w.like_people(_NULLABLE):
        return replace(made, schema=made.schema | {"nullable": True})
    return made


def mention(w: World, each: Field, what: Value, *, alone: bool, unlike: bool = True) -> str:
    """A phrase that tells a value. Without the label only where the schema or being ``alone`` makes it clear.

    And only if no other is of its kind (``unlike``): or else there is nothing that tells which is which.
    """
    if each.said is not None:
        return each.said(w, what)
    clear = alone or (each.hinted and unlike)
    if each.typed and clear and w.chance(0.8 if alone else 0.6):
        typed = w.one(each.typed)
        bare = ("~{v}", "~{v}", '~"{v}"') if alone or not each.plain else (f"~{typed}",)
        wild = maybe(w, bare, v=what.text)
        return expand(typed, w.rng, {"v": what.text}) if wild is None else wild
    return keyed(w, each, what)


def keyed(w: World, each: Field, what: Value) -> str:
    """A phrase that tells a value with its label."""
    return put(w, phrases.KEYED, phrases.KEYED_FORMS, label=_spoken(w, each), v=what.text)


def _spoken(w: World, each: Field) -> str:
    return each.name if w.chance(0.15) else each.label


def object_schema(fields: list[Field]) -> dict[str, Json]:
    """The JSON schema of an object with these fields."""
    schema: dict[str, Json] = {"type": "object", "properties": {each.name: each.schema for each in fields}}
    if required := [each.name for each in fields if each.required]:
        schema["required"] = list[Json](required)
    return schema


def kinds_of(fields: Iterable[Field]) -> dict[str, str]:
    """Of which kind the values of each are, by name, where that is told: of none where two of a name differ."""
    kinds: dict[str, str] = {}
    for each in fields:
        kinds[each.name] = each.kind if kinds.get(each.name, each.kind) == each.kind else ""
    return {name: kind for name, kind in kinds.items() if kind}


def _any(w: World, noun: str, verb: str) -> Field:
    form = w.rng.random()
    if form < 0.60:
        return _plain(w, noun, verb, w.one(STRINGS))
    if form < 0.75:
        return _plain(w, noun, verb, w.one(NUMBERS))
    if form < 0.84:
        return _enum(w, noun)
    if form < 0.91:
        return _flag(w)
    return _list(w, noun) if form < 0.96 else _object(w, noun, verb)


def _plain(w: World, noun: str, verb: str, kind_name: str) -> Field:
    kind = KINDS[kind_name]
    label = _label(w, kind, noun)
    schema: dict[str, Json] = {"type": kind.type}
    description = ""
    if w.chance(0.85):
        description = put(
            w,
            phrases.DESCRIPTIONS,
            phrases.DESCRIPTION_FORMS,
            hint=kind.hint,
            Hint=kind.hint.capitalize(),
            label=label,
            Label=label.capitalize(),
            noun=noun,
            verb=verb,
            example=value(kind, w).text,
        )
        schema["description"] = description
    hinted = kind.hint.lower() in description.lower() or label in kind.labels.of(w.side)[:1]
    named = any(f" {label}".endswith(f" {known}") for known in kind.labels.of(w.side))
    return Field(
        name=draw.label(tuple(label.replace("-", " ").split()), w),
        label=label,
        schema=schema,
        required=w.chance(_REQUIRED[w.side]) and not w.later(LIFELIKE, _LEFT_OUT),
        draw=lambda world: value(kind, world),
        typed=w.any_of(MENTIONS[kind.name]),
        hinted=hinted and kind.type == "string",
        before=kind.name in {"word", "language", "unit"},
        plain=kind.name in ANY_WORDS,
        kind=kind.name if hinted or named else "",
    )


def _label(w: World, kind: Kind, noun: str) -> str:
    label = w.made_up() if w.side is Side.TRAIN and w.chance(_NEW_LABELS) else w.pick(kind.labels)
    form = w.rng.random()
    if form < 0.12:
        return f"{noun} {label}"
    if form < 0.30:
        return f"{w.made_up()} {label}"
    return w.made_up() if form < 0.38 else label


def _describe(w: World, schema: dict[str, Json], label: str, noun: str) -> None:
    if w.chance(0.6):
        schema["description"] = w.say(phrases.SHORT, label=label, Label=label.capitalize(), noun=noun)


def _enum(w: World, noun: str) -> Field:
    options = w.pick(things.OPTIONS).split()
    if w.chance(0.4):
        options = [w.made_up() for _ in range(w.rng.randint(2, 5))]
    if w.chance(0.15):
        options = [option.upper() for option in options]
    label = w.made_up() if w.chance(0.5) else f"{noun} {w.one(['mode', 'type', 'level', 'format', 'class', 'state'])}"
    schema: dict[str, Json] = {"type": "string", "enum": list[Json](options)}
    _describe(w, schema, label, noun)

    def drawn(world: World) -> Value:
        option = world.one(options)
        return Value(option, option.lower() if world.chance(0.3) else option)

    return Field(
        draw.label(tuple(label.split()), w),
        label,
        schema,
        w.chance(0.6),
        drawn,
        typed=w.any_of(phrases.ENUM_SAID),
        hinted=True,
        before=True,
    )


def _flag(w: World) -> Field:
    verbal = w.chance(0.6)
    label = w.pick(phrases.VERBAL_FLAGS if verbal else phrases.PLAIN_FLAGS)
    yes, no = (phrases.VERBAL_YES, phrases.VERBAL_NO) if verbal else (phrases.PLAIN_YES, phrases.PLAIN_NO)

    def said(world: World, what: Value) -> str:
        return put(world, yes if what.json else no, phrases.YES_FORMS if what.json else phrases.NO_FORMS, label=label)

    def drawn(world: World) -> Value:
        answer = world.chance(0.5)
        return Value(answer, "yes" if answer else "no")

    schema: dict[str, Json] = {"type": "boolean"}
    if w.chance(0.5):
        schema["description"] = w.say(phrases.VERBAL_ASKED if verbal else phrases.PLAIN_ASKED, label=label)
    name = draw.label(tuple(label.replace(" a ", " ").replace(" the ", " ").split()), w)
    return Field(name, label, schema, w.chance(0.4), drawn, said=said)


def _list(w: World, noun: str) -> Field:
    kind = KINDS[w.one(("word", "person", "title", "integer", "email", "code", "count"))]
    label = w.pick(phrases.LISTS) if w.chance(0.7) else w.mine(lambda: draw.plural(w.made_up()))
    schema: dict[str, Json] = {"type": "array", "items": {"type": kind.type}}
    _describe(w, schema, label, noun)

    def drawn(world: World) -> Value:
        values = [value(kind, world, apart=True) for _ in range(world.rng.randint(1, 4))]
        texts = [each.text for each in values]
        joined = (
            ", ".join(texts[:-1]) + world.one([" and ", ", ", ", and "]) + texts[-1] if len(texts) > 1 else texts[0]
        )
        return Value([each.json for each in values], joined)

    return Field(draw.label(tuple(label.split()), w), label, schema, w.chance(0.7), drawn)


def _object(w: World, noun: str, verb: str) -> Field:
    label = w.pick(phrases.OBJECTS) if w.chance(0.7) else w.made_up()
    taken: set[str] = set()
    inner = [
        field(w, noun, verb, taken, ("person", "place", "street", "count", "code", "email", "title", "decimal"))
        for _ in range(w.rng.randint(2, 3))
    ]
    schema = object_schema(inner)
    _describe(w, schema, label, noun)

    def drawn(world: World) -> Value:
        values = {each.name: each.draw(world) for each in inner if each.required or world.chance(0.7)}
        shown = world.one([", ", " and ", ", "]).join(
            f"{each.label} {values[each.name].text}" for each in inner if each.name in values
        )
        return Value({name: each.json for name, each in values.items()}, shown)

    return Field(draw.label(tuple(label.split()), w), label, schema, w.chance(0.8), drawn, said=_said_object(label))


def _said_object(label: str) -> Callable[[World, Value], str]:
    def said(world: World, what: Value) -> str:
        return put(world, phrases.OBJECT_SAID, ("~{label} ~{v}", "~{label} ~({v})"), label=label, v=what.text)

    return said
