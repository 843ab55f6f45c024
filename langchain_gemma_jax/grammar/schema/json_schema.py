"""The compiler of JSON schemas to grammars: every value that a grammar allows is valid against its schema.

Not every valid value is allowed: objects have their members in one order, and no undeclared members unless the schema
asks for them; numbers have no exponents; recursive schemas have a limited depth. Requirements that a grammar cannot
promise raise an error or are put into a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Literal, Node, Repeat, Rule, SchemaJson, Terminal, either
from langchain_gemma_jax.grammar.pattern_text import MAX_LENGTH, Pattern
from langchain_gemma_jax.grammar.reading import Reading, ReadingError
from langchain_gemma_jax.grammar.schema.schema_arrays import array, in_brackets
from langchain_gemma_jax.grammar.schema.schema_facts import (
    ASKING,
    Clause,
    Facts,
    UnpromisedError,
    UnreadableError,
    pattern_of,
    same,
)
from langchain_gemma_jax.grammar.schema.schema_objects import ObjectShape, free_shape, merged_objects
from langchain_gemma_jax.grammar.schema.schema_scalars import number, string
from langchain_gemma_jax.grammar.schema.writing import Asked, Writing
from langchain_gemma_jax.stopping import check as check_stop

LEVELS = 32  # of objects and arrays inside each other
LEVELS_OF_RECURSION = 12  # below the place where a schema refers to itself
LEVELS_OF_ANYTHING = 5  # below a schema that allows anything
WORK = 100_000  # for one schema: about a tenth of a second of a processor, but the same schemas on each machine
OF_A_PART = 16  # of that, once references are followed
OF_A_READING = 1000  # a pattern that is compiled
OF_A_CHARACTER = 4  # of a pattern
OF_MULTIPLES = 2000
MAX_RULES = 2000
MOST_APART = 100  # options of a oneOf that are compared with each other

_ALTERNATIVES = ("anyOf", "oneOf")


@dataclass
class SchemaReader:
    """Compiles one schema. ``rules`` are its grammar's rules; each comes after those that it refers to."""

    root: Mapping[str, Json] | bool
    writing: Writing
    lenient: bool = False
    rules: dict[str, Node] = field(default_factory=dict)
    unpromised: dict[str, None] = field(default_factory=dict)
    prefix: str = ""  # of the names of rules
    _work: int = 0
    _readings: dict[Node, Reading] = field(default_factory=dict)
    _patterns: dict[str, Pattern] = field(default_factory=dict)
    _made: dict[tuple[str, int], Node | None] = field(default_factory=dict)  # by reference and levels

    def whole(self, *more: Mapping[str, Json]) -> Node:
        """Return the node of the values that fit the whole schema, and all of ``more``.

        Raises:
            SchemaError: a schema is malformed or too large, no value fits it, or it cannot be promised.
        """
        found = self.values([(self.root, "#"), *((schema, "#") for schema in more)], LEVELS, ())
        if found is None:
            raise SchemaError("#", f"no value fits it, or none of at most {LEVELS} levels")
        return found

    def value(self, schema: Json, at: str, levels: int, inside: tuple[str, ...] = ()) -> Node | None:
        """Return the node of the values that fit a schema, or None. ``inside``: the references that led to it."""
        return self.values([(schema, at)], levels, inside)

    def values(self, schemas: Sequence[tuple[Json, str]], levels: int, inside: tuple[str, ...]) -> Node | None:
        """Return the node of the values that fit several schemas at once; None if none does."""
        parts: list[Clause] = []
        for schema, at in schemas:
            if schema is False:
                return None
            if isinstance(schema, Mapping):
                parts.append((schema, at))
            elif schema is not True:
                raise SchemaError(at, f"expected a schema, found {type(schema).__name__}")
        return self._all_of(parts, levels, inside)

    def cannot(self, at: str, what: str) -> None:
        """Add a requirement to the list of those that cannot be promised, or raise an error if not ``lenient``."""
        if not self.lenient:
            advice = "Leave it out and check the result; strict=False leaves it out for you"
            raise UnpromisedError(at, f"{what}: a grammar cannot promise that. {advice}")
        self.unpromised[f"{at}: {what}"] = None

    def check(self, node: Node, at: str) -> None:
        """See ``Checks.check``."""
        if node in self._readings:
            return
        self.spend(at, OF_MULTIPLES if isinstance(node, SchemaJson) else OF_A_READING)
        try:
            self._readings[node] = Reading(node)
        except ReadingError as error:
            raise UnreadableError(at, str(error)) from None

    def fits(self, terminal: Terminal, text: str, at: str) -> bool:
        """See ``Promises.fits``."""
        self.check(terminal, at)
        self.spend(at, 4 + len(text) // 4)
        try:
            return self._readings[terminal].fits(text)
        except ReadingError as error:
            raise UnreadableError(at, str(error)) from None

    def pattern(self, text: Json, at: str) -> Pattern:
        """See ``Promises.pattern``."""
        if not isinstance(text, str):
            return pattern_of(text, at)  # which says what is wrong
        if (found := self._patterns.get(text)) is None:
            self.spend(at, OF_A_CHARACTER * min(len(text), MAX_LENGTH))
            found = self._patterns[text] = pattern_of(text, at)
        return found

    def spend(self, at: str, work: int) -> None:
        """See ``Promises.spend``."""
        self._work += work
        check_stop()
        if self._work > WORK:
            what = "up to here it has too many parts, once its references are followed, or values, or patterns"
            raise SchemaError(at, f"it is too large: {what}")

    def rule(self, node: Node) -> Node:
        """Make a rule of a node, and return a reference to it."""
        if isinstance(node, Rule | Literal):
            return node
        name = f"{self.prefix}{len(self.rules)}"
        if len(self.rules) >= MAX_RULES:
            raise SchemaError("#", "it is too large once its references are followed")
        self.rules[name] = node
        return Rule(name)

    # References, and schemas that combine others

    def _all_of(self, parts: Sequence[Clause], levels: int, inside: tuple[str, ...]) -> Node | None:
        asking = [part for part in parts if _asks(part[0])]
        if len(asking) == 1 and isinstance(asking[0][0].get("$ref"), str) and _only_refers(asking[0][0]):
            return self._referred(str(asking[0][0]["$ref"]), asking[0][1], levels, inside)
        plain: list[Clause] = []
        groups: list[tuple[Sequence[Json], str, bool]] = []
        for part in asking:
            if not self._flatten(part, plain, groups, ()):
                return None
        return self._combined(plain, groups, levels, inside)

    def _flatten(
        self,
        part: Clause,
        plain: list[Clause],
        groups: list[tuple[Sequence[Json], str, bool]],
        seen: tuple[str, ...],
    ) -> bool:
        """Separate a schema's own keywords (``plain``) from its alternatives (``groups``).

        Return False if no value fits the schema.
        """
        schema, at = part
        self.spend(at, OF_A_PART)
        if (reference := schema.get("$ref")) is not None:
            if reference in seen:
                raise SchemaError(at, f"$ref: {reference!r} refers to itself, and to nothing else")
            joined = [(self._find(reference, at), str(reference))]
            seen = (*seen, str(reference))
        else:
            joined = []
        joined += [(one, f"{at}/allOf/{index}") for index, one in enumerate(_schemas(schema, "allOf", at))]
        for one, place in joined:
            if one is False or (isinstance(one, Mapping) and not self._flatten((one, place), plain, groups, seen)):
                return False
        found = [(_schemas(schema, word, at), f"{at}/{word}", word == "oneOf") for word in _ALTERNATIVES]
        groups += [group for group in found if group[0]]
        if not ASKING.isdisjoint(schema):
            plain.append(part)
        return True

    def _combined(
        self,
        plain: list[Clause],
        groups: list[tuple[Sequence[Json], str, bool]],
        levels: int,
        inside: tuple[str, ...],
    ) -> Node | None:
        if not groups:
            facts = Facts(plain[0][1] if plain else "#", self)
            self.spend(facts.at, OF_A_PART * len(plain))
            for schema, at in plain:
                facts.add(schema, at)
            return self._of_kinds(facts, levels, inside)
        (options, at, exclusive), rest = groups[0], groups[1:]
        if exclusive and not self._apart(plain, options, at):
            self.cannot(at, "oneOf, whose options are not plainly apart, instead of anyOf")
        lenient, self.lenient = self.lenient, False
        found: list[Node] = []
        problem: UnpromisedError | None = None  # alternatives that cannot be promised are left out if others remain
        try:
            for index, option in enumerate(options):
                try:
                    node = self._option(option, f"{at}/{index}", plain, rest, levels, inside)
                except UnpromisedError as error:
                    problem = problem or error
                    self.unpromised[f"{error.at}: {error.problem}"] = None
                    continue
                if node is not None:
                    found.append(node)
        finally:
            self.lenient = lenient
        if problem is not None and not found:
            if not lenient:
                raise problem
            nodes = [
                self._option(option, f"{at}/{index}", plain, rest, levels, inside)
                for index, option in enumerate(options)
            ]
            found = [node for node in nodes if node is not None]
        return either(*found) if found else None

    def _option(
        self,
        option: Json,
        place: str,
        plain: list[Clause],
        groups: list[tuple[Sequence[Json], str, bool]],
        levels: int,
        inside: tuple[str, ...],
    ) -> Node | None:
        """Return the node of one alternative, combined with the other keywords and groups."""
        if not plain and not groups:  # nothing to combine it with: a reference stays a reference
            return self.value(option, place, levels, inside)
        more_plain, more_groups = list(plain), list(groups)
        if option is False:
            return None
        if isinstance(option, Mapping) and not self._flatten((option, place), more_plain, more_groups, ()):
            return None
        return self._combined(more_plain, more_groups, levels, inside)

    def _referred(self, reference: str, at: str, levels: int, inside: tuple[str, ...]) -> Node | None:
        chain: tuple[str, ...] = ()
        target = self._find(reference, at)
        while isinstance(target, Mapping) and isinstance(target.get("$ref"), str) and _only_refers(target):
            chain = (*chain, reference)
            reference = str(target["$ref"])
            if reference in chain:
                raise SchemaError(at, f"$ref: {reference!r} refers to itself, and to nothing else")
            target = self._find(reference, at)
        if reference in inside:
            levels = min(levels, LEVELS_OF_RECURSION)
        if (reference, levels) not in self._made:
            if inside.count(reference) > LEVELS + 1:
                raise SchemaError(at, f"$ref: {reference!r} refers to itself with nothing in between")
            found = self.value(target, reference, levels, (*inside, reference))
            self._made[reference, levels] = None if found is None else self.rule(found)
        return self._made[reference, levels]

    def _find(self, reference: Json, at: str) -> Json:
        if not isinstance(reference, str):
            raise SchemaError(at, f"$ref: expected a string, found {type(reference).__name__}")
        found: Json = self.root
        if reference != "#" and not reference.startswith("#/"):
            raise SchemaError(at, f"$ref: {reference!r} leads out of the schema. References begin with '#/'")
        for step in reference.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(found):
                found = found[int(name)]
            else:
                raise SchemaError(at, f"$ref: {reference!r} is not in the schema")
        if not isinstance(found, Mapping | bool):
            raise SchemaError(at, f"$ref: {reference!r} is no schema")
        return found

    def _apart(self, plain: list[Clause], options: Sequence[Json], at: str) -> bool:
        """Return True if it is certain that no value fits two of the alternatives."""
        known: list[Facts] = []
        for index, option in enumerate(options):
            parts, groups = list(plain), list[tuple[Sequence[Json], str, bool]]()
            if option is False:
                continue
            if isinstance(option, Mapping) and not self._flatten((option, f"{at}/{index}"), parts, groups, ()):
                continue
            facts = Facts(at, self)
            for schema, place in parts:
                facts.add(schema, place)
            self.spend(at, OF_A_PART)
            known.append(facts)
        if all(facts.choices is not None for facts in known):
            values = [value for facts in known for value in {same(choice) for choice in facts.choices or ()}]
            return len(set(values)) == len(values)
        if len(known) > MOST_APART:
            return False
        return all(_are_apart(first, second) for index, first in enumerate(known) for second in known[index + 1 :])

    # Values by their kinds

    def _of_kinds(self, facts: Facts, levels: int, inside: tuple[str, ...]) -> Node | None:
        if facts.choices is not None:
            choices = {same(choice): choice for choice in facts.choices if facts.allows(choice)}
            return either(*map(self.writing.constant, choices.values())) if choices else None
        kinds = facts.possible_kinds()
        if kinds is None:
            return self.anything(levels)
        found = [node for kind in kinds if (node := self._kind(kind, facts, levels, inside)) is not None]
        return either(*found) if found else None

    def _kind(self, kind: str, facts: Facts, levels: int, inside: tuple[str, ...]) -> Node | None:
        match kind:
            case "null":
                return self.writing.constant(None)
            case "boolean":
                return either(Literal("true"), Literal("false"))
            case "string":
                return string(self, facts)
            case "array":
                return array(self, facts, levels - 1, inside) if levels else None
            case "object":
                return self._object(facts, levels - 1, inside) if levels else None
        if kind == "integer" and "number" in (facts.kinds or ()):
            return None  # numbers include them
        return number(self, facts, whole=kind == "integer")

    def anything(self, levels: int) -> Node:
        """Return the node of any value, to a limited depth."""
        levels = min(levels, LEVELS_OF_ANYTHING)
        key = ("", levels)
        if key not in self._made:
            facts = Facts("#", self)
            plain = [self._kind(kind, facts, 0, ()) for kind in ("string", "number", "boolean", "null")]
            options = [node for node in plain if node is not None]
            if levels:
                inner = self.anything(levels - 1)
                options.append(in_brackets(Repeat(inner, Literal(self.writing.comma))))
                shape = free_shape(self.writing, Asked(), inner).node(self.rule)
                options += [] if shape is None else [shape]
            self._made[key] = self.rule(either(*options))
        found = self._made[key]
        if found is None:
            raise TypeError("there is always some value")
        return found

    def _object(self, facts: Facts, levels: int, inside: tuple[str, ...]) -> Node | None:
        shape: ObjectShape | None = merged_objects(self, facts, levels, inside)
        return None if shape is None else shape.node(self.rule)


def _asks(schema: Mapping[str, Json]) -> bool:
    return not ASKING.isdisjoint(schema) or any(word in schema for word in ("$ref", "allOf", *_ALTERNATIVES))


def _only_refers(schema: Mapping[str, Json]) -> bool:
    return ASKING.isdisjoint(schema) and not any(word in schema for word in ("allOf", *_ALTERNATIVES))


def _schemas(schema: Mapping[str, Json], word: str, at: str) -> Sequence[Json]:
    found = schema.get(word)
    if found is None:
        return ()
    if not isinstance(found, list | tuple) or not found or any(not isinstance(one, Mapping | bool) for one in found):
        raise SchemaError(f"{at}/{word}", "expected a list of schemas")
    return found


def _are_apart(first: Facts, second: Facts) -> bool:
    if first.choices is not None and second.choices is not None:
        return {same(choice) for choice in first.choices}.isdisjoint(same(choice) for choice in second.choices)
    for one, other in ((first, second), (second, first)):
        if one.choices is not None and other.kinds is not None and not any(map(other.allows, one.choices)):
            return True
    if first.kinds is None or second.kinds is None:
        return False
    kinds = ["number" if kind == "integer" else kind for kind in first.kinds]
    shared = {kind for kind in kinds if kind in second.kinds or (kind == "number" and "integer" in second.kinds)}
    return not shared or (shared == {"object"} and _have_other_tags(first, second))


def _have_other_tags(first: Facts, second: Facts) -> bool:
    """Return True if two objects must both have a member whose values always differ."""
    ours, theirs = _tags(first), _tags(second)
    return any(name in theirs and values.isdisjoint(theirs[name]) for name, values in ours.items())


def _tags(facts: Facts) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for schema, _ in facts.objects:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
            continue
        for name, declared in properties.items():
            if name in required and isinstance(declared, Mapping):
                if "const" in declared:
                    found[name] = {same(declared["const"])}
                elif isinstance(choices := declared.get("enum"), list | tuple):
                    found[name] = {same(choice) for choice in choices}
    return found
