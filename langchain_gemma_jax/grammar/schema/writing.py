"""How a grammar writes values: what every notation has to say, and JSON."""

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

LONGEST_KEY = 64  # of members that have no names in the schema


@dataclass(frozen=True)
class Asked:
    """What a schema asks of a string."""

    patterns: tuple[Pattern, ...] = ()
    low: int = 0
    high: int | None = None


class Writing(ABC):
    """A way to write objects, their keys, strings and constants."""

    comma: ClassVar[str]
    colon: ClassVar[str]

    @abstractmethod
    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return the names of members in the order in which they are written."""

    @abstractmethod
    def key(self, name: str) -> Node:
        """Return the node of a member's name, with the colon."""

    @abstractmethod
    def free_name(self, asked: Asked, excluded: frozenset[str]) -> Terminal:
        """Return the terminal of a name that the schema leaves open: none of the excluded ones."""

    @abstractmethod
    def free_key(self, name: Terminal) -> Node:
        """Return the node of a name that was left open, with the colon."""

    @abstractmethod
    def string(self, asked: Asked) -> Node:
        """Return the node of a string."""

    @abstractmethod
    def constant(self, value: Json) -> Node:
        """Return the node of one value."""


class JsonWriting(Writing):
    """JSON as Python writes it: a space behind commas and colons. Models have read it so most of the time."""

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
    """A mapping of another kind than ``dict``, which ``json`` does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)
