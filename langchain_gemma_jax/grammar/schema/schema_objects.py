"""Objects: declared members in one order, optional ones present or not, then members with undeclared names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import NOTHING, Literal, Node, Repeat, Terminal, either, sequence
from langchain_gemma_jax.grammar.schema.schema_facts import Clause, Facts, Promises, pattern_of
from langchain_gemma_jax.grammar.schema.schema_scalars import Checks, asked_string, check_places
from langchain_gemma_jax.grammar.schema.writing import LONGEST_KEY, Asked, Writing
from langchain_gemma_jax.grammar.terminals import words

MAX_MEMBERS = 800
MAX_COUNTED = 4000  # places in a chain of members, if they are counted


class Values(Checks, Protocol):
    """The part of ``SchemaReader`` that objects and arrays need."""

    def values(self, schemas: Sequence[tuple[Json, str]], levels: int, inside: tuple[str, ...]) -> Node | None: ...

    def rule(self, node: Node) -> Node: ...


@dataclass(frozen=True)
class Member:
    """A declared member: the name, the colon and the value."""

    node: Node
    required: bool


@dataclass(frozen=True)
class ObjectShape:
    """An object's declared members in the order of writing, then members with undeclared names (``free``)."""

    writing: Writing
    members: tuple[Member, ...]
    free: Node | None = None
    low: int = 0
    high: int | None = None

    def node(self, rule: Callable[[Node], Node], brackets: str = "{}") -> Node | None:
        """Return the node of the object; None if no object fits. ``rule`` makes a rule of a node."""
        if all(member.required for member in self.members) and self.free is None:
            count = len(self.members)
            if count < self.low or (self.high is not None and count > self.high):
                return None
            comma = Literal(self.writing.comma)
            parts = [(*((comma,) if number else ()), member.node) for number, member in enumerate(self.members)]
            inner: Node | None = sequence(*(node for part in parts for node in part))
        else:
            inner = self._chain(rule)
        return None if inner is None else sequence(Literal(brackets[0]), inner, Literal(brackets[1]))

    def _chain(self, rule: Callable[[Node], Node]) -> Node | None:
        """Return the node of the members, made from the last to the first.

        ``lists`` has, for each number of members seen so far, the node of the lists that can follow, with at least one
        more member. If members are not counted, that number does not matter.
        """
        counted = self.low > 1 or self.high is not None
        top = min(max(self.low, self.high or 0), max(1, len(self.members))) if counted else 0
        if len(self.members) * top > MAX_COUNTED:
            raise SchemaError("#", "minProperties or maxProperties: too large for an object with this many members")
        free = rule(self.free) if self.free is not None and counted else self.free
        lists = [self._free_members(free, seen) for seen in range(top + 1)]
        may_end = True  # no required member follows
        comma = Literal(self.writing.comma)
        for member in reversed(self.members):
            node = rule(member.node) if counted else member.node  # if counted, it is used more than once
            now: list[Node | None] = []
            for seen, without in enumerate(lists):
                after = min(seen + 1, top)
                more = lists[after]
                options: list[Node] = []
                if self.high is None or seen < self.high:
                    ends = [NOTHING] if may_end and (not counted or after >= self.low) else []
                    goes_on = [] if more is None else [sequence(comma, more)]
                    options = [sequence(node, either(*goes_on, *ends))] if goes_on or ends else []
                if without is not None and not member.required:
                    options.append(without)
                now.append(rule(either(*options)) if options else None)
            lists = now
            may_end = may_end and not member.required
        empty = [NOTHING] if may_end and self.low == 0 else []
        found = [*([] if lists[0] is None else [lists[0]]), *empty]
        return either(*found) if found else None

    def _free_members(self, free: Node | None, seen: int) -> Node | None:
        """Return the node of one or more members with undeclared names; None if there can be none."""
        if free is None or self.low - seen > 1 or (self.high is not None and seen >= self.high):
            return None  # two names may be equal, so that two members written need not be two members
        return Repeat(free, Literal(self.writing.comma), 1, None if self.high is None else self.high - seen)


def free_shape(writing: Writing, asked: Asked, value: Node) -> ObjectShape:
    """Return an object whose members may have any names."""
    return ObjectShape(writing, (), sequence(writing.free_key(writing.free_name(asked, frozenset())), value))


def merged_objects(reader: Values, facts: Facts, levels: int, inside: tuple[str, ...]) -> ObjectShape | None:
    """Return the object that fits all schemas; None if there is none.

    Raises:
        SchemaError: a schema is malformed, or cannot be promised.
    """
    declared = [_Declared.of(schema, at) for schema, at in facts.objects]
    names = list(
        dict.fromkeys(
            [*(n for each in declared for n in each.properties), *(n for each in declared for n in each.required)]
        )
    )
    if len(names) > MAX_MEMBERS:
        raise SchemaError(facts.at, f"properties: expected at most {MAX_MEMBERS:,}, found {len(names):,}")
    required = {name for each in declared for name in each.required}
    keys = _Keys.of(declared, facts, reader)
    names += [name for name in keys.names or () if name not in names and keys.open]
    members: list[Member] = []
    for name in reader.writing.ordered(names):
        asked = [schema for each in declared for schema in each.asked_of(name, reader)]
        node = reader.values(asked, levels, inside) if keys.allow(name, reader, facts.at) else None
        if node is None and name in required:
            return None
        if node is not None:
            members.append(Member(sequence(reader.writing.key(name), node), name in required))
    low, high = facts.members
    free = _free(reader, declared, keys, names, levels, inside)
    if free is not None and (most := len(members) + 1) < low <= (low if high is None else high):
        why = "two names that it leaves open may come out the same"
        reader.cannot(facts.at, f"minProperties {low}, where {most - 1} are declared: {why}")
        low = most
    return ObjectShape(reader.writing, tuple(members), free, low, high)


def _free(
    reader: Values,
    declared: list[_Declared],
    keys: _Keys,
    names: list[str],
    levels: int,
    inside: tuple[str, ...],
) -> Node | None:
    """Return the node of a member with an undeclared name; None if there can be none."""
    if not keys.open or keys.names is not None:
        return None
    patterns = list(dict.fromkeys(pattern for each in declared for pattern in each.patterns))
    if len(patterns) > 1 or (patterns and any(each.additional not in (None, False) for each in declared)):
        return None  # the grammar would have to decide which of them applies to a name
    schemas = [schema for each in declared for schema in each.asked_of_free()]
    value = reader.values(schemas, levels, inside)
    if value is None:
        return None
    asked = keys.asked
    if patterns:
        at = next(each.at for each in declared if each.patterns)
        asked = Asked((*asked.patterns, pattern_of(patterns[0], at)), asked.low, asked.high)
    name = reader.writing.free_name(asked, frozenset(names))
    if asked.patterns:
        at = f"{declared[0].at}, the names of members"
        check_places(at, asked.patterns, LONGEST_KEY * max(1, asked.low, asked.high or 1))
        reader.check(name, at)
    return sequence(reader.writing.free_key(name), value)


@dataclass(frozen=True)
class _Declared:
    """One schema's keywords for objects."""

    at: str
    properties: Mapping[str, Json]
    patterns: Mapping[str, Json]
    required: tuple[str, ...]
    additional: Json  # None: not given

    @classmethod
    def of(cls, schema: Mapping[str, Json], at: str) -> _Declared:
        properties, patterns = (_table(schema, word, at) for word in ("properties", "patternProperties"))
        required = schema.get("required")
        if isinstance(required, bool):  # draft 3 has it in the property, as a boolean
            required = ()
        if required is not None and (
            not isinstance(required, list | tuple) or any(not isinstance(name, str) for name in required)
        ):
            raise SchemaError(at, "required: expected a list of names")
        additional = schema.get("additionalProperties")
        if additional is not None and not isinstance(additional, Mapping | bool):
            raise SchemaError(at, f"additionalProperties: expected a schema, found {type(additional).__name__}")
        return cls(at, properties, patterns, tuple(map(str, required or ())), additional)

    @cached_property
    def _named(self) -> list[tuple[str, Terminal]]:
        return [(pattern, words([pattern_of(pattern, self.at)])) for pattern in self.patterns]

    def asked_of(self, name: str, reader: Promises) -> list[tuple[Json, str]]:
        """Return the schemas of a member by its name."""
        found = [(self.properties[name], f"{self.at}/properties/{name}")] if name in self.properties else []
        found += [
            (self.patterns[pattern], f"{self.at}/patternProperties/{pattern}")
            for pattern, terminal in self._named
            if reader.fits(terminal, name, self.at)
        ]
        if not found and self.additional is not None:
            return [(self.additional, f"{self.at}/additionalProperties")]
        return found

    def asked_of_free(self) -> list[tuple[Json, str]]:
        """Return the schemas of a member that is not declared."""
        if self.patterns:
            return [(schema, f"{self.at}/patternProperties/{pattern}") for pattern, schema in self.patterns.items()]
        return [] if self.additional is None else [(self.additional, f"{self.at}/additionalProperties")]


@dataclass(frozen=True)
class _Keys:
    """The requirements of all schemas on the names of members."""

    open: bool  # undeclared names are allowed
    asked: Asked
    names: tuple[str, ...] | None  # the only possible names

    @classmethod
    def of(cls, declared: list[_Declared], facts: Facts, reader: Checks) -> _Keys:
        # An object without declared members is a dictionary. With them, other members must be asked for.
        asked_for = any(each.additional not in (None, False) or each.patterns for each in declared)
        is_open = asked_for or not any("properties" in schema or "required" in schema for schema, _ in facts.objects)
        closed = any(each.additional is False and not each.patterns for each in declared)
        for schema, at in facts.objects:
            if schema.get("unevaluatedProperties") not in (None, True):
                if not _sees_all(schema, at, facts.objects):
                    reader.cannot(
                        at, "unevaluatedProperties, other than false next to all keywords that declare members"
                    )
                closed |= not asked_for
        of_names = Facts(facts.at, reader)
        for schema, at in facts.objects:
            if (rule := schema.get("propertyNames")) is not None and rule is not True:
                if not isinstance(rule, Mapping) or "$ref" in rule:
                    reader.cannot(at, "propertyNames, other than with a pattern, a length or an enum")
                else:
                    of_names.add(rule, f"{at}/propertyNames")
        names = None
        if of_names.choices is not None:
            names = tuple(name for name in of_names.choices if isinstance(name, str) and of_names.allows(name))
        asked = asked_string(reader, of_names)
        return cls(is_open and not closed and asked is not None, asked or Asked(), names)

    def allow(self, name: str, reader: Promises, at: str) -> bool:
        """Return True if a member may have a name."""
        if self.names is not None:
            return name in self.names
        high = self.asked.high
        return (
            self.asked.low <= len(name)
            and (high is None or len(name) <= high)
            and (not self.asked.patterns or reader.fits(words(self.asked.patterns), name, at))
        )


def _sees_all(schema: Mapping[str, Json], at: str, parts: Sequence[Clause]) -> bool:
    """Return True if all parts of an object are inside the schema that closes it, or in the target of its $ref."""
    inside = schema.get("allOf")
    nested = inside if isinstance(inside, list | tuple) else []
    named = [one["$ref"] for one in (schema, *nested) if isinstance(one, Mapping) and isinstance(one.get("$ref"), str)]
    places = (at, *map(str, named))
    others = (other for _, other in parts if other not in places)
    return schema["unevaluatedProperties"] is False and all(
        any(other.startswith(f"{place}/allOf/") for place in places) for other in others
    )


def _table(schema: Mapping[str, Json], word: str, at: str) -> Mapping[str, Json]:
    found = schema.get(word)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise SchemaError(at, f"{word}: expected schemas by name, found {type(found).__name__}")
    return found
