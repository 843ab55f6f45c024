"""The shapes in which chat formats write calls and values of their own notation, for the grammar of a turn."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter
from langchain_gemma_jax.dialects.fenced.fence_parser import CLOSER, OPENER
from langchain_gemma_jax.dialects.native.notation import CALL_WORD, Notation, in_order
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import (
    NOTHING,
    Control,
    Literal,
    Node,
    Repeat,
    Sequence,
    Terminal,
    either,
    sequence,
)
from langchain_gemma_jax.grammar.pattern_text import SPACES, Pattern
from langchain_gemma_jax.grammar.schema.writing import LONGEST_KEY, Asked, JsonWriting, Writing
from langchain_gemma_jax.grammar.terminals import UNWRITTEN, before, up_to, words


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


@dataclass(frozen=True)
class TurnGrammar:
    """The grammar of a turn that calls tools."""

    whole: Node  # calls only
    free_or_calls: Node  # what follows the opener; the whole answer if the opener is no control token
    opener: str | None  # a control token
    call_word: str | None = None  # what a call begins with, before its name; None: it needs the opener


class CallShape(ABC):
    """The shape in which a chat format writes calls."""

    writing: Writing
    free: Node | None  # a turn without calls; None: any text without the banned tokens
    banned: tuple[str, ...]  # control tokens that begin calls
    opening_line: str | None  # the beginning of the line that opens calls, if no control token does

    @abstractmethod
    def call(self, name: str, arguments: Node) -> Node:
        """Return the grammar of one call, without the marks around it."""

    @abstractmethod
    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        """Return the grammar of a turn with one call or, if ``parallel``, with several."""

    @abstractmethod
    def check_name(self, name: str) -> None:
        """Check that this format can write a tool's name.

        Raises:
            InputError: the name cannot be written.
        """


@dataclass(frozen=True)
class NativeCalls(CallShape):
    """Calls between control tokens, in the format's own notation."""

    notation: Notation

    @property
    def writing(self) -> Writing:  # type: ignore[override]
        return NativeWriting(self.notation)

    @property
    def banned(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.notation.call[0],)

    free = None
    opening_line = None

    def call(self, name: str, arguments: Node) -> Node:
        return sequence(Literal(f"{CALL_WORD}{name}"), arguments)

    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        opener, closer = map(Control, self.notation.call)
        first = sequence(call, closer)
        more = Repeat(sequence(opener, first), NOTHING) if parallel else NOTHING
        return TurnGrammar(sequence(opener, first, more), sequence(first, more), opener.name, CALL_WORD)

    def check_name(self, name: str) -> None:
        if name != name.strip() or any(mark in name for mark in "{}\n"):
            raise InputError(f"A tool's name: expected one without braces, and white space around it, found {name!r}.")


@dataclass(frozen=True)
class FencedCalls(CallShape):
    """Calls as lines of JSON in a block."""

    writing = JsonWriting()
    free = before(OPENER)
    banned = ()
    opening_line = OPENER

    def call(self, name: str, arguments: Node) -> Node:
        called = json.dumps(name, ensure_ascii=False)
        return sequence(Literal(f'{{"name": {called}, "parameters": '), arguments, Literal("}"))

    def check_name(self, name: str) -> None:
        """Accept any name, since JSON can write any string. See ``CallShape.check_name``."""

    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        lines = Repeat(call, Literal("\n"), 1) if parallel else call
        rest = sequence(lines, Literal(f"\n{CLOSER}"))
        return TurnGrammar(sequence(Literal(OPENER), rest), either(before(OPENER), sequence(up_to(OPENER), rest)), None)
