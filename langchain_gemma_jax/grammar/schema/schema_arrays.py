"""Arrays: first items with a schema each, then items with a common schema, with limits on their number."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import (
    NOTHING,
    Control,
    Either,
    Literal,
    Node,
    Repeat,
    Sequence,
    maybe,
    sequence,
)
from langchain_gemma_jax.grammar.schema.schema_facts import Facts
from langchain_gemma_jax.grammar.schema.schema_objects import Member, ObjectShape, Values

MAX_PLACES = 200  # of first items with a schema each


def array(reader: Values, facts: Facts, levels: int, inside: tuple[str, ...]) -> Node | None:
    """Return the node of the arrays that fit all schemas; None if there are none.

    Raises:
        SchemaError: a schema is malformed, or cannot be promised.
    """
    low, high = facts.items
    if high is not None and low > high:
        return None
    parts = [_Parts.of(schema, at) for schema, at in facts.arrays]
    if any(schema.get("uniqueItems") is True for schema, _ in facts.arrays) and (high is None or high > 1):
        if (found := _subset(reader, facts, parts, levels, inside)) is not None:
            return found
        reader.cannot(facts.at, "uniqueItems")
    count = max((len(each.first) for each in parts), default=0)
    if count > MAX_PLACES:
        raise SchemaError(facts.at, f"prefixItems: expected at most {MAX_PLACES}, found {count:,}")
    firsts = [
        reader.values([schema for each in parts for schema in each.at_place(place)], levels, inside)
        for place in range(count if high is None else min(count, high))
    ]
    tail = _rest(reader, parts, count, facts, levels, inside)
    comma = Literal(reader.writing.comma)
    for place in reversed(range(len(firsts))):
        node = firsts[place]
        more = None if node is None or tail is None else sequence(comma if place else NOTHING, node, tail)
        tail = more if place < low else NOTHING if more is None else reader.rule(maybe(more))
    return None if tail is None else in_brackets(tail)


def in_brackets(node: Node) -> Node:
    """Return the node of an array with this node between its brackets."""
    return sequence(Literal("["), node, Literal("]"))


class _Parts:
    """One schema's subschemas for the first items, and for the rest."""

    def __init__(self, first: list[tuple[Json, str]], rest: tuple[Json, str] | None) -> None:
        self.first, self.rest = first, rest

    @classmethod
    def of(cls, schema: Mapping[str, Json], at: str) -> _Parts:
        names = ("prefixItems", "items")
        if isinstance(schema.get("items"), list | tuple):  # the keywords up to draft 2019-09
            names = ("items", "additionalItems")
        first, rest = (schema.get(name) for name in names)
        if first is not None and not isinstance(first, list | tuple):
            raise SchemaError(at, f"prefixItems: expected a list of schemas, found {type(first).__name__}")
        firsts = [(each, f"{at}/{names[0]}/{index}") for index, each in enumerate(first or ())]
        if rest is None and firsts:
            rest = False
        return cls(firsts, None if rest is None else (rest, f"{at}/{names[1]}"))

    def at_place(self, place: int) -> list[tuple[Json, str]]:
        """Return the schemas of the item at an index: one, or none."""
        if place < len(self.first):
            return [self.first[place]]
        return [] if self.rest is None else [self.rest]


def _rest(
    reader: Values, parts: list[_Parts], count: int, facts: Facts, levels: int, inside: tuple[str, ...]
) -> Node | None:
    """Return the node of the items after the first ``count``; None if some are required and none can be."""
    low, high = facts.items
    schemas = [each.rest for each in parts if each.rest is not None]
    item = reader.values(schemas, levels, inside) if schemas or low > count or not count else None
    most = None if high is None else high - count
    if item is None or (most is not None and most <= 0):
        return NOTHING if low <= count else None
    comma = Literal(reader.writing.comma)
    least = max(0, low - count)
    return Repeat(sequence(comma, item), NOTHING, least, most) if count else Repeat(item, comma, least, most)


def _subset(reader: Values, facts: Facts, parts: list[_Parts], levels: int, inside: tuple[str, ...]) -> Node | None:
    """Return the node of items that all differ: some of the possible values, in order.

    None: the possible values are not a list of constants.
    """
    if any(each.first for each in parts):
        return None
    schemas = [each.rest for each in parts if each.rest is not None]
    item = reader.values(schemas, levels, inside) if schemas else None
    options = item.options if isinstance(item, Either) else () if item is None else (item,)
    if not options or not all(map(_is_constant, options)):
        return None
    members = tuple(Member(option, required=False) for option in options)
    return ObjectShape(reader.writing, members, None, *facts.items).node(reader.rule, "[]")


def _is_constant(node: Node) -> bool:
    if isinstance(node, Sequence):
        return all(map(_is_constant, node.items))
    return isinstance(node, Literal | Control)
