"""The grammar of values in a chat format's own notation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter
from langchain_gemma_jax.dialects.native.notation import Notation, in_order
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Control, Literal, Node, Sequence, Terminal, sequence
from langchain_gemma_jax.grammar.pattern_text import SPACES, Pattern
from langchain_gemma_jax.grammar.schema.writing import LONGEST_KEY, Asked, Writing
from langchain_gemma_jax.grammar.terminals import UNWRITTEN, words


@dataclass(frozen=True)
class NativeWriting(Writing):
    """A chat format's own notation: keys in alphabetical order, strings between control tokens and without escapes."""

    notation: Notation
    comma: ClassVar[str] = ","
    colon: ClassVar[str] = ":"

    def ordered(self, names: Iterable[str]) -> list[str]:
        return in_order(dict.fromkeys(names))

    def key(self, name: str) -> Node:
        out = PromptWriter()
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
        out = PromptWriter()
        self.notation.value(out, value)
        return _nodes(out)


_KEY_INSIDE = rf"{UNWRITTEN}:,\{{\}}\[\]\n\r\t"
_KEY_END = f"{_KEY_INSIDE}{SPACES}"
_BARE = Pattern(
    rf"[^\x22{_KEY_END}](?:[^{_KEY_INSIDE}]{{0,{LONGEST_KEY - 2}}}[^{_KEY_END}])?", 1, LONGEST_KEY, LONGEST_KEY
)


def _nodes(out: PromptWriter) -> Node:
    pieces = (Control(piece.text) if piece.is_control else Literal(piece.text) for piece in out.pieces)
    found: Node = Sequence(tuple(pieces))
    return sequence(found)
