"""The shapes in which chat formats write calls, for the grammar of a turn."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass

from langchain_gemma_jax.dialects.fenced.fence_parser import CLOSER, OPENER
from langchain_gemma_jax.dialects.native.native_writing import NativeWriting
from langchain_gemma_jax.dialects.native.notation import Notation
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.nodes import NOTHING, Control, Literal, Node, Repeat, either, sequence
from langchain_gemma_jax.grammar.schema.writing import JsonWriting, Writing
from langchain_gemma_jax.grammar.terminals import before, up_to


@dataclass(frozen=True)
class TurnGrammar:
    """The grammar of a turn that calls tools."""

    whole: Node  # calls only
    free_or_calls: Node  # what follows the opener; the whole answer if the opener is no control token
    opener: str | None  # a control token


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
        return sequence(Literal(f"call:{name}"), arguments)

    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        opener, closer = map(Control, self.notation.call)
        first = sequence(call, closer)
        more = Repeat(sequence(opener, first), NOTHING) if parallel else NOTHING
        return TurnGrammar(sequence(opener, first, more), sequence(first, more), opener.name)

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
