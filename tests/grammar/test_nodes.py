"""Nodes are put together in as few as possible, and know how short their texts can be."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.grammar.nodes import (
    NOTHING,
    Control,
    Either,
    Grammar,
    Literal,
    Repeat,
    Rule,
    Sequence,
    Terminal,
    either,
    maybe,
    sequence,
)

A, B, AB = Literal("a"), Literal("b"), Literal("ab")


def test_literals_join_and_what_is_alone_needs_nothing_around_it():
    assert sequence(A, B) == AB
    assert sequence(A, sequence(Control("x"), A), B) == Sequence((A, Control("x"), AB))
    assert sequence() == sequence(NOTHING) == NOTHING
    assert either(A, A) == A
    assert either(A, B, A) == Either((A, B))
    assert maybe(A) == Either((A, NOTHING))


@pytest.mark.parametrize(
    ("root", "shortest"),
    [
        (None, 0),
        (AB, 2),
        (Sequence((Control("x"), Terminal("/.*/", 5))), 6),
        (Either((AB, A)), 1),
        (Repeat(AB, A, 3), 8),
        (Repeat(AB, A), 0),
        (Sequence((Rule("pair"), A)), 5),
    ],
)
def test_a_grammar_knows_its_shortest_text(root, shortest):
    rules = {"one": AB, "pair": Sequence((Rule("one"), Rule("one")))}
    assert Grammar("", root, rules).shortest() == shortest


def test_grammars_are_equal_by_their_keys_and_an_opener_needs_something_behind_it():
    assert Grammar("x", A, {}) == Grammar("x", B, {}) != Grammar("y", A, {})
    with pytest.raises(ValueError, match="needs a root"):
        Grammar("x", None, {}, opener="<x>")
