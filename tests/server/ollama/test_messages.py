"""Ollama's messages, whose results of tools have no ids, as LangChain's."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax import InputError
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.server.ollama.messages import ollama_messages


def called(*names, **more):
    return {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in names]} | more


def test_a_conversation_of_all_roles():
    call = {"id": "7", "type": "function", "function": {"index": 0, "name": "f", "arguments": {"city": "Paris"}}}
    found = ollama_messages(
        [
            {"role": "system", "content": "S", "images": []},
            {"role": "user", "content": "U", "images": ["aGVsbG8="]},
            {"role": "assistant", "content": "A", "thinking": "T", "tool_calls": [call]},
            {"role": "tool", "content": "warm", "tool_name": "f"},
            {"role": "user", "content": None},
        ]
    )
    image = {"type": "image", "base64": "aGVsbG8="}
    calls = [{"name": "f", "args": {"city": "Paris"}, "id": "7", "type": "tool_call"}]
    assert found == [
        SystemMessage("S"),
        HumanMessage([image, {"type": "text", "text": "U"}]),
        AIMessage("A", tool_calls=calls, additional_kwargs={"reasoning_content": "T"}),
        ToolMessage("warm", tool_call_id="7", name="f"),
        HumanMessage(""),
    ]


def test_results_find_their_calls_by_id_by_name_or_by_order():
    for results, answered in (
        ([{}, {}, {}], ["call_1", "call_2", "call_3"]),
        ([{"tool_name": "g"}, {"tool_name": "f"}, {"tool_name": "f"}], ["call_2", "call_1", "call_3"]),
        ([{"name": "g"}, {}, {}], ["call_2", "call_1", "call_3"]),
        ([{"tool_call_id": "call_3"}, {"tool_name": "f"}, {}], ["call_3", "call_1", "call_2"]),
        ([{}, {}, {}, {}], ["call_1", "call_2", "call_3", ""]),
        ([{"tool_name": "h"}], [""]),
    ):
        told = [called("f", "g", "f"), *({"role": "tool", "content": "r"} | each for each in results)]
        found = ollama_messages([{"role": "user", "content": "Hi"}, *told])
        assert [each.tool_call_id for each in found[2:]] == answered
        conversation(found)
    twice = [called("f"), {"role": "tool", "content": "1"}, called("f"), {"role": "tool", "content": "2"}]
    assert [each.tool_call_id for each in ollama_messages(twice)[1::2]] == ["call_1", "call_2"]


def test_what_is_no_message_is_refused_by_its_place():
    for message, where in (
        ("Hi", r"messages\[0\]: expected an object"),
        ({"role": "developer"}, r"messages\[0\]\.role: expected one of system, user"),
        ({"role": []}, r"messages\[0\]\.role"),
        ({"role": "user", "content": ["Hi"]}, r"messages\[0\]\.content"),
        ({"role": "user", "images": "x"}, r"messages\[0\]\.images: expected a list"),
        ({"role": "user", "images": [{}]}, r"messages\[0\]\.images\[0\]"),
        ({"role": "assistant", "images": ["x"]}, "shown by users and tools alone"),
        ({"role": "assistant", "thinking": 5}, r"messages\[0\]\.thinking"),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}, r"arguments"),
        ({"role": "assistant", "tool_calls": [{"name": "f"}]}, r"tool_calls\[0\]\.function"),
        ({"role": "tool", "tool_name": 5}, r"messages\[0\]\.tool_name"),
        ({"role": "user", "color": "red"}, r"messages\[0\]: color"),
    ):
        with pytest.raises(InputError, match=where):
            ollama_messages([message])
    with pytest.raises(InputError, match="messages: expected a list"):
        ollama_messages("Hi")
