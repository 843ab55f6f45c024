"""Searches are taken out of an answer's events, however they come."""

from __future__ import annotations

from langchain_gemma_jax.chat.answering.answer import AnswerBuilder
from langchain_gemma_jax.chat.answering.search_calls import SearchCalls
from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid, TextDelta, Tool

FIND = [CallBegin("tool_search"), ArgumentsDelta('{"query": "ri'), ArgumentsDelta('ng"}'), CallEnd({"query": "ring"})]
RING = [CallBegin("ring"), ArgumentsDelta("{}"), CallEnd({})]
TOOLS = (Tool("ring", "Rings a bell.", deferred=True), Tool("other", deferred=True))


def test_searches_are_hidden_and_found():
    for broken in (False, True):
        hidden, builder = SearchCalls(TOOLS), AnswerBuilder()
        cut = [Invalid("x", "cut off", "tool_search", unfinished=True)]
        events = [TextDelta("a"), *FIND, *RING, TextDelta("b"), *(FIND[:2] + cut if broken else FIND)]
        builder.add(events)
        shown = [each for event in events for each in hidden.without([event])]
        assert shown == [TextDelta("a"), *RING, TextDelta("b"), *(cut if broken else [])]
        search = hidden.searched(builder.answer(), 3, ())
        assert search.found == (("ring",),) * (1 if broken else 2)
        assert (search.text, search.tokens) == ("ab", 3)
    assert hidden.searched(AnswerBuilder().answer(), 0, ()) is None


def test_without_deferred_tools_a_tool_of_that_name_is_the_callers():
    events = [*FIND]
    hidden, builder = SearchCalls((Tool("tool_search"),)), AnswerBuilder()
    builder.add(events)
    assert hidden.without(events) is events
    assert hidden.searched(builder.answer(), 0, ()) is None
