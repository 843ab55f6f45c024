"""How values are written: as JSON, or in a chat format's own notation. For grammars."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from langchain_gemma_jax.dialects.messages import Json
from langchain_gemma_jax.dialects.notation import Notation, in_order
from langchain_gemma_jax.dialects.prompt import Writer
from langchain_gemma_jax.engine.grammar import nodes
from langchain_gemma_jax.engine.grammar.nodes import Control, Literal, Node, Sequence, Terminal, sequence
from langchain_gemma_jax.engine.grammar.pattern_text import SPACES, Pattern
from langchain_gemma_jax.engine.grammar.terminals import UNWRITTEN, words

LONGEST_KEY = 64  # of members that have no names in the schema


@dataclass(frozen=True)
class Asked:
    """What a string has to be."""

    patterns: tuple[Pattern, ...] = ()
    low: int = 0
    high: int | None = None


class Writing(ABC):
    """How objects, their keys, strings and constants are written."""

    comma: ClassVar[str]
    colon: ClassVar[str]

    @abstractmethod
    def ordered(self, names: Iterable[str]) -> list[str]:
        """Members in the order in which they are written."""

    @abstractmethod
    def key(self, name: str) -> Node:
        """A member's name, with the colon."""

    @abstractmethod
    def free_name(self, asked: Asked, excluded: frozenset[str]) -> Terminal:
        """A name that the schema leaves open: none of the excluded ones."""

    @abstractmethod
    def free_key(self, name: Terminal) -> Node:
        """Such a name with the colon."""

    @abstractmethod
    def string(self, asked: Asked) -> Node:
        """A string."""

    @abstractmethod
    def constant(self, value: Json) -> Node:
        """Just this value."""


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
        return nodes.Json(json.dumps(schema), asked.low + 2)

    def constant(self, value: Json) -> Node:
        return Literal(_dumped(value))


@dataclass(frozen=True)
class NativeWriting(Writing):
    """A chat format's own notation: keys by the alphabet, strings between control tokens and without escapes."""

    notation: Notation
    comma: ClassVar[str] = ","
    colon: ClassVar[str] = ":"

    def ordered(self, names: Iterable[str]) -> list[str]:
        return in_order(dict.fromkeys(names))

    def key(self, name: str) -> Node:
        out = Writer()
        self.notation.key(out, name)
        return sequence(_nodes(out), Literal(self.colon))

    def free_name(self, asked: Asked, excluded: frozenset[str]) -> Terminal:
        return words((_BARE, *asked.patterns), asked.low, asked.high, excluded)

    def free_key(self, name: Terminal) -> Node:
        return sequence(name, Literal(self.colon))

    def string(self, asked: Asked) -> Node:
        quote = Control(self.notation.quote)
        return sequence(quote, words(asked.patterns, asked.low, asked.high), quote)

    def constant(self, value: Json) -> Node:
        out = Writer()
        self.notation.value(out, value)
        return _nodes(out)


_UNESCAPED = Pattern(rf"[^\x22\\{UNWRITTEN}\n\r\t]*", 0, None, 1)
_KEY_INSIDE = rf"{UNWRITTEN}:,\{{\}}\[\]\n\r\t"
_KEY_END = f"{_KEY_INSIDE}{SPACES}"
_BARE = Pattern(
    rf"[^\x22{_KEY_END}](?:[^{_KEY_INSIDE}]{{0,{LONGEST_KEY - 2}}}[^{_KEY_END}])?", 1, LONGEST_KEY, LONGEST_KEY
)


def _nodes(out: Writer) -> Node:
    pieces = (Control(piece.text) if piece.is_control else Literal(piece.text) for piece in out.pieces)
    found: Node = Sequence(tuple(pieces))
    return sequence(found)


def _dumped(value: Json) -> str:
    return _ENCODER.encode(value)


def _plain(value: object) -> object:
    """A mapping of another kind than ``dict``, which ``json`` does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_plain)
