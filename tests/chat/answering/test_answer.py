"""The events of one answer add up to it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.chat.answering.answer import AnswerBuilder
from langchain_gemma_jax.dialects import (
    ArgumentsDelta,
    CallBegin,
    CallEnd,
    Invalid,
    Message,
    TextDelta,
    ThoughtDelta,
    ToolCall,
)

EVENTS = [
    *(ThoughtDelta("Hm"), ThoughtDelta("."), TextDelta("Su"), TextDelta("re. ")),
    *(CallBegin("f"), ArgumentsDelta('{"a":'), ArgumentsDelta("1}"), CallEnd({"a": 1})),
    *(CallBegin("g"), Invalid("call:g{", "cut off", "g", unfinished=True), TextDelta("So.")),
]


@given(st.lists(st.integers(0, len(EVENTS)), max_size=4))
def test_it_is_the_same_however_the_events_come(cuts):
    builder, ends = AnswerBuilder(), sorted({0, *cuts, len(EVENTS)})
    for start, end in pairwise(ends):
        builder.add(EVENTS[start:end])
    answer = builder.answer()
    assert (answer.text, answer.thinking) == ("Sure. So.", "Hm.")
    assert (answer.calls, answer.invalid) == ((ToolCall("f", {"a": 1}),), (EVENTS[9],))
    words = "Sure. So.call:g{"  # what was no call is text to whoever reads it next
    assert answer.message == Message.assistant(words, thinking="Hm.", calls=answer.calls)
