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
from langchain_gemma_jax.engine.grammar import characters
from langchain_gemma_jax.engine.grammar.leaves import WRITTEN, Words
from langchain_gemma_jax.engine.grammar.nodes import Control, Literal, Node, Sequence, sequence
from langchain_gemma_jax.engine.grammar.pattern import Chars, Pattern, Row, Times, optional
from langchain_gemma_jax.engine.grammar.pattern_text import SPACES

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
    def free_key(self, asked: Asked, excluded: frozenset[str]) -> Node:
        """A name that the schema leaves open, with the colon: none of the excluded ones."""

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

    def free_key(self, asked: Asked, excluded: frozenset[str]) -> Node:
        high = LONGEST_KEY if asked.high is None and not asked.patterns else asked.high
        words = Words(asked.patterns, max(1, asked.low), high, excluded, escaped=True)
        return sequence(Literal('"'), words, Literal(f'"{self.colon}'))

    def string(self, asked: Asked) -> Node:
        words = Words(asked.patterns, asked.low, asked.high, escaped=True)
        return sequence(Literal('"'), words, Literal('"'))

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

    def free_key(self, asked: Asked, excluded: frozenset[str]) -> Node:
        bare = Row((_KEY_BEGIN, optional(Row((Times(_KEY_INSIDE, 0, LONGEST_KEY - 2), _KEY_END)))))
        words = Words((bare, *asked.patterns), asked.low, asked.high, excluded)
        return sequence(words, Literal(self.colon))

    def string(self, asked: Asked) -> Node:
        quote = Control(self.notation.quote)
        return sequence(quote, Words(asked.patterns, asked.low, asked.high), quote)

    def constant(self, value: Json) -> Node:
        out = Writer()
        self.notation.value(out, value)
        return _nodes(out)


_KEY_INSIDE = Chars(characters.without(WRITTEN, characters.of(":,{}[]\n\r\t")))
_KEY_END = Chars(characters.without(_KEY_INSIDE.characters, SPACES))
_KEY_BEGIN = Chars(characters.without(_KEY_END.characters, characters.of('"')))


def _nodes(out: Writer) -> Node:
    pieces = (Control(piece.text) if piece.is_control else Literal(piece.text) for piece in out.pieces)
    found: Node = Sequence(tuple(pieces))
    return sequence(found)


def _dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    """A mapping of another kind than ``dict``, which ``json`` does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
