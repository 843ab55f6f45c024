"""Deltas of one kind are joined."""

from __future__ import annotations

from langchain_gemma_jax.dialects import ArgumentsDelta, CallEnd, TextDelta, ThoughtDelta, merged


def test_adjacent_deltas_are_joined_and_nothing_else():
    events = [
        TextDelta("a"),
        TextDelta("b"),
        ThoughtDelta("c"),
        TextDelta("d"),
        CallEnd({}),
        CallEnd({}),
        ArgumentsDelta("{"),
    ]
    assert merged([*events, ArgumentsDelta("}")]) == [
        *(TextDelta("ab"), ThoughtDelta("c"), TextDelta("d"), CallEnd({}), CallEnd({}), ArgumentsDelta("{}"))
    ]
    assert merged([]) == []
