"""A validator of values against JSON schemas, for requirements that no grammar can promise.

Schemas and values are not trusted, so the work is bounded. Patterns that could take long are not checked, and most
formats are not either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.schema.schema_facts import same

MOST_STEPS = 100_000  # comparisons of a schema with a part of the value
MOST_WORK = 10**7  # steps that a regular expression may take

_REPEATED = re.compile(r"[*+]|\{\d*,\d*\}")  # quantifiers that allow any number of repetitions, or very many


def violation(value: Json, schema: Mapping[str, Json] | bool) -> str | None:  # noqa: FBT001  true and false are schemas
    """Return the first problem of a value, with its place; None if the value is valid."""
    check = _Check(schema)
    try:
        return next(check.problems(value, schema, "the arguments", ()), None)
    except (_TooMuchError, RecursionError):
        return "it is too large to be held against its schema"


class _TooMuchError(Exception):
    """The schema and the value are too large together."""


class _Check:
    """Validates the parts of one value against the parts of one schema."""

    def __init__(self, root: Mapping[str, Json] | bool) -> None:  # noqa: FBT001
        self._root = root
        self._steps = 0

    def problems(self, value: Json, schema: Json, at: str, inside: tuple[tuple[str, int], ...]) -> Iterator[str]:
        """Yield the problems of a value. ``inside``: the references that are being followed, each with its value."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooMuchError
        if schema is False:
            yield f"{at} is not allowed"
        if not isinstance(schema, Mapping):
            return
        yield from _of_any(value, schema, at)
        if isinstance(value, bool) or value is None:
            pass
        elif isinstance(value, int | float):
            yield from _of_numbers(value, schema, at)
        elif isinstance(value, str):
            yield from _of_strings(value, schema, at)
        elif isinstance(value, Mapping):
            yield from self._of_objects(value, schema, at, inside)
        else:
            yield from self._of_arrays(value, schema, at, inside)
        yield from self._of_others(value, schema, at, inside)

    def _fits(self, value: Json, schema: Json, inside: tuple[tuple[str, int], ...]) -> bool:
        return next(self.problems(value, schema, "", inside), None) is None

    def _of_others(
        self, value: Json, schema: Mapping[str, Json], at: str, inside: tuple[tuple[str, int], ...]
    ) -> Iterator[str]:
        """Yield the problems by subschemas that apply to the same value."""
        reference = schema.get("$ref")
        if isinstance(reference, str) and (reference, id(value)) not in inside:
            yield from self.problems(value, self._find(reference), at, (*inside, (reference, id(value))))
        for each in _listed(schema, "allOf"):
            yield from self.problems(value, each, at, inside)
        for word, fitting in (("anyOf", _any_number), ("oneOf", _exactly_one)):
            options = _listed(schema, word)
            if options and not fitting(sum(self._fits(value, each, inside) for each in options)):
                yield f"{at}: expected {'one' if word == 'anyOf' else 'exactly one'} of its {word} to fit"
        if "not" in schema and self._fits(value, schema["not"], inside):
            yield f"{at} is what its 'not' excludes"
        if "if" in schema:
            branch = "then" if self._fits(value, schema["if"], inside) else "else"
            yield from self.problems(value, schema.get(branch, True), at, inside)

    def _find(self, reference: str) -> Json:
        found: Json = self._root
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                return True
        return found

    def _of_arrays(
        self, value: Sequence[Json], schema: Mapping[str, Json], at: str, inside: tuple[tuple[str, int], ...]
    ) -> Iterator[str]:
        yield from _of_size(len(value), schema, "Items", at)
        if schema.get("uniqueItems") is True and len({same(each) for each in value}) < len(value):
            yield f"{at}: expected items that all differ"
        first = _listed(schema, "prefixItems") or _listed(schema, "items")
        rest = schema.get("additionalItems" if isinstance(schema.get("items"), list) else "items", True)
        for number, each in enumerate(value):
            yield from self.problems(each, first[number] if number < len(first) else rest, f"{at}[{number}]", inside)
        if "contains" in schema:
            count = sum(self._fits(each, schema["contains"], inside) for each in value)
            least, most = _whole(schema.get("minContains"), 1), _whole(schema.get("maxContains"), len(value))
            if not least <= count <= most:
                yield f"{at}: expected from {least} to {most} items as 'contains' says, found {count}"

    def _of_objects(
        self, value: Mapping[str, Json], schema: Mapping[str, Json], at: str, inside: tuple[tuple[str, int], ...]
    ) -> Iterator[str]:
        yield from _of_size(len(value), schema, "Properties", at)
        for name in _listed(schema, "required"):
            if name not in value:
                yield f"{at}: expected a member {name!r}"
        declared, patterns = _members(schema, "properties"), _members(schema, "patternProperties")
        for name, each in value.items():
            own = [declared[name]] if name in declared else []
            own += [one for pattern, one in patterns.items() if _found(pattern, name) is not False]
            for one in own or [schema.get("additionalProperties", True)]:
                yield from self.problems(each, one, f"{at}.{name}", inside)
            yield from self.problems(name, schema.get("propertyNames", True), f"the name {name!r} in {at}", inside)
        for word in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, asked in _members(schema, word).items():
                if name not in value:
                    continue
                if isinstance(asked, list):
                    yield from (f"{at}: {name!r} needs a member {one!r}" for one in asked if one not in value)
                else:
                    yield from self.problems(value, asked, at, inside)


def _of_any(value: Json, schema: Mapping[str, Json], at: str) -> Iterator[str]:
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(named, list) and not any(_is(value, str(kind)) for kind in named):
        yield f"{at}: expected {' or '.join(map(str, named))}"
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(choices, list) and same(value) not in {same(choice) for choice in choices}:
        yield f"{at}: expected one of the values that are listed"


def _of_numbers(value: float, schema: Mapping[str, Json], at: str) -> Iterator[str]:
    number = Decimal(str(value))
    bounds: Sequence[tuple[str, str, Callable[[Decimal], bool]]] = (
        ("minimum", "at least", lambda bound: number > bound or (number == bound and not _excluded(schema, "Minimum"))),
        ("maximum", "at most", lambda bound: number < bound or (number == bound and not _excluded(schema, "Maximum"))),
        ("exclusiveMinimum", "more than", lambda bound: number > bound),
        ("exclusiveMaximum", "less than", lambda bound: number < bound),
        ("multipleOf", "a multiple of", lambda bound: bound <= 0 or number % bound == 0),
    )
    for word, what, holds in bounds:
        bound = schema.get(word)
        if isinstance(bound, int | float) and not isinstance(bound, bool) and not holds(Decimal(str(bound))):
            yield f"{at}: expected {what} {bound}, found {value}"


def _of_strings(value: str, schema: Mapping[str, Json], at: str) -> Iterator[str]:
    yield from _of_size(len(value), schema, "Length", at)
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _found(pattern, value) is False:
        yield f"{at}: expected a string with the pattern {pattern!r}"
    if schema.get("format") == "regex" and not _is_pattern(value):
        yield f"{at}: expected a regular expression"


def _of_size(size: int, schema: Mapping[str, Json], what: str, at: str) -> Iterator[str]:
    least, most = _whole(schema.get(f"min{what}"), 0), _whole(schema.get(f"max{what}"), size)
    if not least <= size <= most:
        yield f"{at}: expected {what.lower()} from {least} to {most}, found {size}"


def _is(value: Json, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list | tuple)
        case "object":
            return isinstance(value, Mapping)
        case "integer":
            return not isinstance(value, bool) and (
                isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            )
    return kind != "number" or (isinstance(value, int | float) and not isinstance(value, bool))


def _any_number(count: int) -> bool:
    return count > 0


def _exactly_one(count: int) -> bool:
    return count == 1


def _excluded(schema: Mapping[str, Json], which: str) -> bool:
    return schema.get(f"exclusive{which}") is True  # as it was up to draft 4


def _listed(schema: Mapping[str, Json], word: str) -> Sequence[Json]:
    found = schema.get(word)
    return found if isinstance(found, list | tuple) else ()


def _members(schema: Mapping[str, Json], word: str) -> Mapping[str, Json]:
    found = schema.get(word)
    return found if isinstance(found, Mapping) else {}


def _whole(value: Json, otherwise: int) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _found(pattern: str, text: str) -> bool | None:
    """Return True if a pattern matches somewhere in a text; None if that could take too long."""
    known = _readable(pattern)
    if known is None:
        return None
    expression, repeats = known
    return None if (len(text) + 2) ** (repeats + 1) > MOST_WORK else expression.search(text) is not None


@lru_cache(maxsize=256)
def _readable(pattern: str) -> tuple[re.Pattern[str], int] | None:
    """Return a compiled pattern, and the number of its quantifiers; None if it does not compile or could be slow.

    A quantifier inside a repeated group is slow: the time can double with each character.
    """
    translated = _translated(pattern)
    groups = [False]  # for each open group: True if it has a quantifier or alternatives
    bare = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", translated, flags=re.DOTALL)
    for place, mark in enumerate(bare):
        if mark == "(":
            groups.append(False)
        elif mark == ")" and len(groups) > 1:
            within = groups.pop()
            if within and _REPEATED.match(bare, place + 1):
                return None
            groups[-1] |= within
        elif mark == "|" or _REPEATED.match(bare, place):
            groups[-1] = True
    try:
        return re.compile(translated, re.ASCII), len(_REPEATED.findall(bare))
    except (re.error, OverflowError, RecursionError):
        return None


def _translated(pattern: str) -> str:
    """Translate a JavaScript pattern to Python: named groups, and the end of the text."""
    parts = re.split(r"(\\.|\[(?:\\.|[^\]\\])*\])", pattern, flags=re.DOTALL)
    plain = [re.sub(r"\(\?<(?![=!])", "(?P<", part).replace("$", r"\Z") for part in parts[::2]]
    kept = [*parts[1::2], ""]
    return "".join(text for pair in zip(plain, kept, strict=True) for text in pair)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(_translated(text))
    except (re.error, OverflowError, RecursionError):
        return False
    return True
