"""Searches in an answer's metadata, and back."""

from __future__ import annotations

import json

from langchain_gemma_jax.chat.history.searches import Search, found_by, searches_in
from langchain_gemma_jax.dialects import Message


def test_what_was_searched_comes_back_as_it_was():
    search = Search(("a", "b"), (("x", "y"), ()), "Words.", "Thought.", 7)
    told = json.loads(json.dumps({"tool_search": [search.as_metadata]}))
    (again,) = searches_in(told)
    assert again.messages == search.messages
    asked, first, second = again.messages
    assert [call.arguments for call in asked.calls] == [{"query": "a"}, {"query": "b"}]
    assert (asked.texts, asked.thinking) == (["Words."], "Thought.")
    assert (found_by(first), found_by(second)) == (("x", "y"), ())
    assert found_by(Message.tool({"found": ["x"]}, name="other")) is None
    assert found_by(Message.user("x")) is None
    assert again.without_words.messages[0].texts == [""]


def test_what_others_keep_under_that_name_is_theirs():
    for theirs in ("x", 3, None, [3], [{"searches": [{"query": 3, "found": []}]}], [{"searches": 3}], {"a": 1}):
        assert searches_in({"tool_search": theirs}) == ()
    assert searches_in({}) == ()
