"""Notations of values in a grammar: the interface, and JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from langchain_gemma_jax.grammar import nodes
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Literal, Node, Terminal, sequence
from langchain_gemma_jax.grammar.pattern_text import Pattern
from langchain_gemma_jax.grammar.terminals import UNWRITTEN, words

LONGEST_KEY = 64  # of members whose names are not in the schema


@dataclass(frozen=True)
class Asked:
    """The requirements on a string: patterns that must all match, and limits on its length."""

    patterns: tuple[Pattern, ...] = ()
    low: int = 0
    high: int | None = None


class Writing(ABC):
    """A notation: it writes objects' keys, strings and constants."""

    comma: ClassVar[str]
    colon: ClassVar[str]

    @abstractmethod
    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return the names of members in the order of writing."""

    @abstractmethod
    def key(self, name: str) -> Node:
        """Return the node of a member's name, with the colon."""

    @abstractmethod
    def free_name(self, asked: Asked, excluded: frozenset[str]) -> Terminal:
        """Return the terminal of an undeclared name, which is none of the excluded ones."""

    @abstractmethod
    def free_key(self, name: Terminal) -> Node:
        """Return the node of an undeclared name, with the colon."""

    @abstractmethod
    def string(self, asked: Asked) -> Node:
        """Return the node of a string."""

    @abstractmethod
    def constant(self, value: Json) -> Node:
        """Return the node of exactly this value."""


class JsonWriting(Writing):
    """JSON as Python writes it, with a space after commas and colons: the form that models have seen most."""

    comma: ClassVar[str] = ", "
    colon: ClassVar[str] = ": "

    def ordered(self, names: Iterable[str]) -> list[str]:
        return list(names)

    def key(self, name: str) -> Node:
        return Literal(_dumped(name) + self.colon)

    def free_name(self, asked: Asked, excluded: frozenset[str]) -> Terminal:
        high = LONGEST_KEY if asked.high is None and not asked.patterns else asked.high
        return words((_UNESCAPED, *asked.patterns), max(1, asked.low), high, excluded)

    def free_key(self, name: Terminal) -> Node:
        return sequence(Literal('"'), name, Literal(f'"{self.colon}'))

    def string(self, asked: Asked) -> Node:
        schema: dict[str, Json] = {"type": "string"}
        if asked.low:
            schema["minLength"] = asked.low
        if asked.high is not None:
            schema["maxLength"] = asked.high
        if asked.patterns:
            schema["allOf"] = [{"pattern": f"^(?:{pattern.regex})$"} for pattern in asked.patterns]
        else:
            schema["x-guidance"] = {"json_allowed_escapes": 'nrt"\\'}
        return nodes.SchemaJson(json.dumps(schema), asked.low + 2)

    def constant(self, value: Json) -> Node:
        return Literal(_dumped(value))


_UNESCAPED = Pattern(rf"[^\x22\\{UNWRITTEN}\n\r\t]*", 0, None, 1)


def _dumped(value: Json) -> str:
    return _ENCODER.encode(value)


def _plain(value: object) -> object:
    """Return a mapping as a ``dict``, the only kind that ``json`` can write."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)
