"""The requirements of several schemas on one value, taken together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol, TypeAlias

from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Terminal
from langchain_gemma_jax.grammar.pattern_text import Pattern, parse
from langchain_gemma_jax.grammar.schema.formats import UNPROMISED, WHOLE_NUMBERS, format_pattern
from langchain_gemma_jax.grammar.terminals import words

KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
MAX_CHOICES = 1000
MAX_CHOSEN = 100_000  # characters of all of them together
OF_A_CHOICE = 16  # of the work that a schema may take: see ``Promises.spend``
HUGE = 1 << 24  # characters, items or members: a larger limit is ignored, since no context holds as much

Clause: TypeAlias = tuple[Mapping[str, Json], str]
"""A schema, and its path."""

# Keywords that imply a kind of value if no type is given.
_HINTS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
               "maxProperties", "unevaluatedProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "additionalItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip
_BEYOND = (
    "not", "if", "then", "else", "contains", "minContains", "maxContains", "dependentRequired", "dependentSchemas",
    "dependencies", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
)  # fmt: skip

ASKING = frozenset({"type", "enum", "const", *(word for words in _HINTS.values() for word in words), *_BEYOND})
"""Keywords that restrict a value, without those that combine schemas."""


class UnpromisedError(SchemaError):
    """A schema has a requirement that a grammar cannot promise."""


class Promises(Protocol):
    """The part of ``SchemaReader`` that ``Facts`` needs."""

    def cannot(self, at: str, what: str) -> None:
        """Add a requirement to the list of those that cannot be promised, or raise an error."""

    def fits(self, terminal: Terminal, text: str, at: str) -> bool:
        """Return True if a whole text fits a terminal."""

    def pattern(self, text: Json, at: str) -> Pattern:
        """Return the pattern that a schema writes, as ``pattern_of``. The same text is read once."""

    def spend(self, at: str, work: int) -> None:
        """Count work before it is done, in units of about a microsecond.

        Raises:
            SchemaError: it is more than one schema may be.
        """


class UnreadableError(SchemaError):
    """A string or a number that nothing fits, or that costs too much to compile or match."""


@dataclass
class Facts:
    """The requirements of all schemas that were added: each one can only narrow them."""

    at: str
    reader: Promises
    kinds: tuple[str, ...] | None = None  # None: no type is given
    choices: list[Json] | None = None
    low: Decimal | None = None
    above: bool = False  # ``low`` itself is excluded
    high: Decimal | None = None
    below: bool = False
    steps: list[Decimal] = field(default_factory=list)
    length: tuple[int, int | None] = (0, None)
    items: tuple[int, int | None] = (0, None)
    members: tuple[int, int | None] = (0, None)
    patterns: list[Pattern] = field(default_factory=list)
    arrays: list[Clause] = field(default_factory=list)
    objects: list[Clause] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, schema: Mapping[str, Json], at: str) -> None:
        """Add the requirements of one more schema."""
        for word in _BEYOND:
            if word in schema:
                self.reader.cannot(at, word)
        self._values(schema, at)
        found = [kind for kind, words in _HINTS.items() if any(word in schema for word in words)]
        self.hints += found
        if "array" in found:
            self.arrays.append((schema, at))
        if "object" in found:
            self.objects.append((schema, at))
        self._numbers(schema, at)
        self.length = _tighter(self.length, schema, "minLength", "maxLength", at)
        self.items = _tighter(self.items, schema, "minItems", "maxItems", at)
        self.members = _tighter(self.members, schema, "minProperties", "maxProperties", at)
        if (text := schema.get("pattern")) is not None:
            try:
                self.patterns.append(self.reader.pattern(text, at))
            except UnpromisedError as error:
                self.reader.cannot(error.at, error.problem)
        if (name := schema.get("format")) is not None:
            self._format(name, at)

    def possible_kinds(self) -> tuple[str, ...] | None:
        """Return the kinds of values that the keywords allow. None: any."""
        if self.kinds is not None or self.choices is not None:
            return KINDS if self.kinds is None else self.kinds
        return tuple(dict.fromkeys(self.hints)) or None

    def allows(self, value: Json) -> bool:
        """Return True if a value fits. Of an array or an object only the kind is checked."""
        kinds = KINDS if self.kinds is None else self.kinds
        match value:
            case None:
                return "null" in kinds
            case bool():
                return "boolean" in kinds
            case str():
                low, high = self.length
                return "string" in kinds and low <= len(value) <= (HUGE if high is None else high) and self._fits(value)
            case int() | float():
                integral = isinstance(value, int) or value.is_integer()
                return ("number" in kinds or ("integer" in kinds and integral)) and self._in_range(Decimal(str(value)))
        container, asked = ("object", self.objects) if isinstance(value, Mapping) else ("array", self.arrays)
        if asked:
            self.reader.cannot(
                self.at, f"enum or const of an {container}, together with other keywords for {container}s"
            )
        return container in kinds

    def _in_range(self, value: Decimal) -> bool:
        if self.low is not None and (value < self.low or (self.above and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.below and value == self.high)):
            return False
        return all(value % step == 0 for step in self.steps)

    def _fits(self, text: str) -> bool:
        # One after the other: matching large patterns jointly could take very long.
        return all(self.reader.fits(words((pattern,)), text, self.at) for pattern in self.patterns)

    def _values(self, schema: Mapping[str, Json], at: str) -> None:
        if (kinds := schema.get("type")) is not None:
            named = _kinds(kinds, at)
            self.kinds = named if self.kinds is None else _shared(self.kinds, named)
        if "const" in schema:
            self._choose([schema["const"]])
        if (choices := schema.get("enum")) is not None:
            values = list(_list(choices, "enum", at))
            self.reader.spend(at, OF_A_CHOICE * min(len(values), MAX_CHOICES))
            self._choose(values)
            if len(self.choices or ()) > MAX_CHOICES or sum(map(len, map(same, self.choices or ()))) > MAX_CHOSEN:
                raise SchemaError(at, f"enum: more than {MAX_CHOICES:,} values, or {MAX_CHOSEN:,} characters of them")

    def _choose(self, choices: list[Json]) -> None:
        if self.choices is None:
            self.choices = choices
        else:
            known = {same(choice) for choice in choices}
            self.choices = [choice for choice in self.choices if same(choice) in known]

    def _numbers(self, schema: Mapping[str, Json], at: str) -> None:
        low, high = (_number(schema, word, at) for word in ("minimum", "maximum"))
        above, below = (_number(schema, word, at) for word in ("exclusiveMinimum", "exclusiveMaximum"))
        # Up to draft 4, exclusiveMinimum is a boolean that says if ``minimum`` itself is excluded.
        for bound, exclusive in ((low, schema.get("exclusiveMinimum") is True), (above, True)):
            if bound is not None and (self.low is None or bound > self.low or (bound == self.low and exclusive)):
                self.low, self.above = bound, exclusive
        for bound, exclusive in ((high, schema.get("exclusiveMaximum") is True), (below, True)):
            if bound is not None and (self.high is None or bound < self.high or (bound == self.high and exclusive)):
                self.high, self.below = bound, exclusive
        step = _number(schema, "multipleOf", at)
        if step is not None:
            if step <= 0:
                raise SchemaError(at, f"multipleOf: expected a number above 0, found {step}")
            self.steps.append(step)

    def _format(self, name: Json, at: str) -> None:
        if not isinstance(name, str):
            raise SchemaError(at, f"format: expected a name, found {_shown(name)}")
        if name in UNPROMISED:
            self.reader.cannot(at, f"format {name!r}")
        elif name in WHOLE_NUMBERS:
            low, high = WHOLE_NUMBERS[name]
            self._numbers({"minimum": low, "maximum": high}, at)
        elif (found := format_pattern(name)) is not None:
            self.patterns.append(found)


def pattern_of(text: Json, at: str) -> Pattern:
    """Return the pattern that a schema writes.

    Raises:
        SchemaError: it is no string, or cannot be promised.
    """
    if not isinstance(text, str):
        raise SchemaError(at, f"pattern: expected a string, found {_shown(text)}")
    try:
        return parse(text)
    except ValueError as error:
        raise UnpromisedError(at, str(error)) from None


def same(value: Json) -> str:
    """Return a text that is the same for equal values: 1 equals 1.0, and true equals neither."""
    if isinstance(value, str):  # most are
        return json.dumps(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(key)}:{same(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(same, value)) + "]"
    return json.dumps(value)


def _kinds(kinds: Json, at: str) -> tuple[str, ...]:
    named = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(named, list | tuple) or not named or any(kind not in KINDS for kind in named):
        raise SchemaError(at, f"type: expected one or more of {', '.join(KINDS)}, found {_shown(kinds)}")
    return tuple(str(kind) for kind in dict.fromkeys(named))


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    found = [kind for kind in first if kind in second]
    if "integer" in (*first, *second) and "integer" not in found and {"integer", "number"} <= {*first, *second}:
        found.append("integer")  # whole numbers are numbers
    return tuple(found)


def _tighter(
    known: tuple[int, int | None], schema: Mapping[str, Json], least: str, most: str, at: str
) -> tuple[int, int | None]:
    low, high = known
    if (given := schema.get(least)) is not None:
        low = max(low, _count(given, least, at))
    if (given := schema.get(most)) is not None and (limit := _count(given, most, at)) < HUGE:
        high = limit if high is None else min(high, limit)
    return low, high


def _count(value: Json, word: str, at: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SchemaError(at, f"{word}: expected a whole number from 0, found {_shown(value)}")
    return value


def _number(schema: Mapping[str, Json], word: str, at: str) -> Decimal | None:
    value = schema.get(word)
    if value is None or (isinstance(value, bool) and word.startswith("exclusive")):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(at, f"{word}: expected a number, found {_shown(value)}")
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _list(value: Json, word: str, at: str) -> Sequence[Json]:
    if not isinstance(value, list | tuple) or not value:
        raise SchemaError(at, f"{word}: expected a list with something in it, found {_shown(value)}")
    return value


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
