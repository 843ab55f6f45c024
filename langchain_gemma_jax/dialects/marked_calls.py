"""The grammar of a turn of calls, for one form of calls and one vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.dialects.call_shapes import CallShape, TurnGrammar
from langchain_gemma_jax.dialects.templated.call_forms import CallForm, mark
from langchain_gemma_jax.grammar.nodes import NOTHING, Literal, Node, Repeat, either, sequence
from langchain_gemma_jax.grammar.schema.writing import JsonWriting
from langchain_gemma_jax.grammar.terminals import before, up_to


@dataclass(frozen=True)
class MarkedCalls(CallShape):
    """Calls in a given form. ``control`` says which of its marks are control tokens in the vocabulary."""

    form: CallForm
    control: frozenset[str]

    writing = JsonWriting()

    @property
    def opener_is_control(self) -> bool:
        return self.form.opener in self.control

    @property
    def free(self) -> Node | None:  # type: ignore[override]
        return None if self.opener_is_control else before(self.form.opener)

    @property
    def banned(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.form.opener,) if self.opener_is_control else ()

    @property
    def opening_line(self) -> str | None:  # type: ignore[override]
        return None if self.opener_is_control else self.form.opener

    def call(self, name: str, arguments: Node) -> Node:
        return self.form.call(name, arguments, self.control)

    def check_name(self, name: str) -> None:
        self.form.check_name(name)

    def turn(self, call: Node, *, parallel: bool) -> TurnGrammar:
        form, most = self.form, None if parallel else 1
        between = Literal(form.between) if form.between else NOTHING
        if form.bare:
            calls = Repeat(call, between, 1, most)
            return TurnGrammar(calls, either(before(form.opener), calls), None)
        opener, closer = mark(form.opener, self.control), mark(form.closer, self.control)
        start, end = (Literal(text) if text else NOTHING for text in form.around)
        if form.each_marked:
            first = sequence(start, call, end, closer)
            more = Repeat(sequence(between, opener, first), NOTHING) if parallel else NOTHING
            rest = sequence(first, more)
        else:
            rest = sequence(start, Repeat(call, between, 1, most), end, closer)
        whole = sequence(opener, rest)
        if self.opener_is_control:
            return TurnGrammar(whole, rest, form.opener)
        return TurnGrammar(whole, either(before(form.opener), sequence(up_to(form.opener), rest)), None)
