"""Tools are found by their names, by words of what they do, and by words that are like these."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.chat.asking.tool_index import MOST_FOUND, ToolIndex
from langchain_gemma_jax.dialects import Tool

TOOLS = [
    Tool("get_weather", "The weather of a city, now.", {"properties": {"city": {"description": "Its name."}}}),
    Tool("convertMoney", "Converts an amount between currencies.", {"properties": {"amount": {}, "currency": {}}}),
    Tool("send_mail", "Sends an e-mail.", {"properties": {"to": {"description": "The receiver's address."}}}),
    Tool("read_file", "Reads a file from the disk.", {"properties": {"path": True}}),
    *(Tool(f"list_orders_{number}", "Lists orders of a shop.") for number in range(20)),
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("get_weather", "get_weather"),
        ("GET_WEATHER ", "get_weather"),
        ("how is the weather in Paris", "get_weather"),
        ("money", "convertMoney"),
        ("converting 20 to another currency", "convertMoney"),
        ("emails", "send_mail"),
        ("address", "send_mail"),
        ("file disks", "read_file"),
        ("list_orders_7", "list_orders_7"),
    ],
)
def test_the_best_comes_first(query, first):
    assert ToolIndex(TOOLS).find(query)[0] == first


def test_there_are_few_and_none_for_words_that_mean_nothing():
    index = ToolIndex(TOOLS)
    assert len(index.find("orders of a shop")) == MOST_FOUND
    assert index.find("zzzz qqqq") == index.find("") == index.find("?!") == ()
    assert ToolIndex([]).find("weather") == ()
