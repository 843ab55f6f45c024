"""Answers of other families, read: words are words, thoughts no answer, and ruins are told."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.dialects import Invalid, TemplateDialect, TextDelta, ThoughtDelta, json_grammar, merged
from tests.dialects.templated.families import EACH, FAMILIES, called, dialect_of, pieces, read, takes
from tests.dialects.templated.marked_vocabulary import END


@pytest.mark.parametrize(("name", "as_tokens"), EACH)
def test_words_are_words_and_ruins_are_told(name, as_tokens):
    dialect, rng = dialect_of(name, as_tokens=as_tokens), random.Random(4)
    _, _, one, _ = FAMILIES[name]
    for _ in range(30):
        assert read(dialect, f'Hello, {{"x": 1}} you{END}', rng) == [TextDelta('Hello, {"x": 1} you')]
    if name != "llama":
        assert merged([e for e in read(dialect, f"Well. {one}", rng) if isinstance(e, TextDelta)]) == [
            TextDelta("Well. ")
        ]
    half = one[: one.index("1")]
    events = read(dialect, half, rng)
    assert isinstance(events[-1], Invalid)
    assert events[-1].unfinished
    assert called(events) == []
    broken = read(dialect, one.replace('{"a": 1}', '{"a": }'), rng)
    assert [event for event in broken if isinstance(event, Invalid)] != []
    assert called(broken) == []


def test_thoughts_are_no_answer():
    for as_tokens in (True, False):
        marks = ("<think>", "</think>") if as_tokens else ()
        source = "tools <tool_call> <think> enable_thinking"
        dialect = TemplateDialect(source, frozenset({END, *marks}), (END,))
        assert dialect.thinks
        events = read(dialect, f"<think>\nHm.\n</think>\n\nYes.{END}", random.Random(5))
        assert events == [ThoughtDelta("Hm.\n"), TextDelta("Yes.")]
        inside = dialect.parser(in_thought=True)
        told = [event for part in pieces("Hm.</think>Yes.", dialect.control) for event in inside.feed(*part)]
        assert merged(told + inside.finish()) == [ThoughtDelta("Hm."), TextDelta("Yes.")]
        if as_tokens:
            grammar = json_grammar({"const": 1}, dialect=dialect, thoughts="may")
            assert takes(grammar, dialect, "<think>\nHm.</think>1")
            assert takes(grammar, dialect, "1")
