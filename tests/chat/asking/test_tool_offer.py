"""The tools that are declared, and those that can be called, as a conversation goes on."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.chat.asking.tool_offer import MOST_SEARCHES, Offer
from langchain_gemma_jax.chat.history.searches import SEARCH, Search
from langchain_gemma_jax.dialects import Message, Tool
from langchain_gemma_jax.errors import InputError

PLAIN, ONE, TWO = Tool("plain"), Tool("one", deferred=True), Tool("two", deferred=True)
TOOLS = (PLAIN, ONE, TWO)


def names(tools) -> list[str]:
    return [tool.name for tool in tools]


def test_what_is_found_is_declared_where_it_was_found_once():
    search = Search(("x",), (("two", "gone"),))
    messages = [Message.user("Hi"), *search.messages, Message.assistant("Hm"), *search.messages, Message.user("So?")]
    before, after = Offer.of(TOOLS, "auto", messages[:1]), Offer.of(TOOLS, "auto", messages)
    assert names(before.declared) == names(after.declared) == ["plain", SEARCH]
    assert before.declared == after.declared
    assert (names(before.callable), names(after.callable)) == (["plain", SEARCH], ["plain", "two", SEARCH])
    assert (before.unfound, after.unfound) == ({"one", "two"}, {"one"})
    declared = [names(each.result.declares) for each in after.messages if each.result is not None]
    assert declared == [["two"], []]


def test_without_deferred_tools_nothing_is_different():
    messages = [Message.user("Hi")]
    offer = Offer.of((PLAIN,), "auto", messages)
    assert offer.messages is messages
    assert offer.declared == offer.callable == (PLAIN,)
    assert names(Offer.of((PLAIN, ONE), "one", messages).declared) == ["plain", "one"]


def test_when_all_is_found_there_is_nothing_to_search_for():
    messages = [Message.user("Hi"), *Search(("x",), (("one", "two"),)).messages]
    offer = Offer.of(TOOLS, "any", messages)
    assert (names(offer.callable), offer.unfound) == (["plain", "one", "two"], set())
    assert names(offer.declared) == ["plain", SEARCH]


def test_searches_in_a_row_end():
    search = Search(("x",), ((),))
    row = [message for _ in range(MOST_SEARCHES) for message in search.messages]
    assert names(Offer.of(TOOLS, "any", [Message.user("Hi"), *row]).callable) == ["plain"]
    assert names(Offer.of(TOOLS, "any", [*row, Message.user("Hi")]).callable) == ["plain", SEARCH]
    with pytest.raises(InputError, match="Say in the tools' descriptions"):
        Offer.of((ONE,), "any", [Message.user("Hi"), *row])
