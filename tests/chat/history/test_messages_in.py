"""LangChain's messages, in all their forms, as a model reads them."""

from __future__ import annotations

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from langchain_gemma_jax.chat.history.messages_in import conversation, spoken
from langchain_gemma_jax.dialects import Message, Text, Thinking, ToolCall
from langchain_gemma_jax.errors import InputError

RING = {"name": "ring", "args": {"times": 2}, "id": "c1", "type": "tool_call"}


def one(message) -> Message:
    (found,) = conversation([message])
    return found


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (SystemMessage("Be brief."), Message.system("Be brief.")),
        (HumanMessage("Hello", name="anna"), Message.user("Hello")),
        (HumanMessage(["a", {"type": "text", "text": "b"}]), Message.user("a", "b")),
        (HumanMessage(""), Message.user()),
        (HumanMessage([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]), Message.user("a")),
        (HumanMessage(["a", {"cachePoint": {"type": "default"}}]), Message.user("a")),
        (
            HumanMessage(content_blocks=[{"type": "text-plain", "text": "a", "mime_type": "text/plain"}]),
            Message.user("a"),
        ),
        (ChatMessage(role="developer", content="Be brief."), Message.system("Be brief.")),
        (ChatMessage(role="user", content="Hello"), Message.user("Hello")),
        (ChatMessage(role="model", content="Hello"), Message("assistant", (Text("Hello"),))),
        (FunctionMessage(name="ring", content="done"), Message.tool("done", name="ring")),
    ],
)
def test_what_is_said(message, expected):
    assert one(message) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (ToolMessage("21 degrees", tool_call_id="c1"), Message.tool("21 degrees", id="c1")),
        (
            ToolMessage('{"degrees": 21}', tool_call_id="c1", name="heat"),
            Message.tool({"degrees": 21}, id="c1", name="heat"),
        ),
        (ToolMessage("No.", tool_call_id="c1", status="error"), Message.tool("No.", id="c1", is_error=True)),
        (ToolMessage("a", tool_call_id="c1", artifact=object()), Message.tool("a", id="c1")),
        (ToolMessage([{"type": "text", "text": "a"}, "b"], tool_call_id="c1"), Message.tool("a\nb", id="c1")),
        (ToolMessage("a", tool_call_id=""), Message.tool("a")),
    ],
)
def test_what_a_tool_gave(message, expected):
    assert one(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("Yes.", tool_calls=[RING], additional_kwargs={"reasoning_content": "Hmm."}),
        AIMessage(
            [{"type": "reasoning", "reasoning": "Hmm."}, {"type": "text", "text": "Yes."}, RING],
            tool_calls=[RING],
            response_metadata={"output_version": "v1"},
        ),
        AIMessage(content_blocks=[{"type": "reasoning", "reasoning": "Hmm."}, {"type": "text", "text": "Yes."}, RING]),
        AIMessage([{"type": "reasoning", "reasoning": "Hmm."}, {"type": "text", "text": "Yes."}, RING]),
        AIMessage(
            [
                {"type": "thinking", "thinking": "Hmm.", "signature": "x"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Yes."},
                {"type": "tool_use", "id": "c1", "name": "ring", "input": {"times": 2}},
            ],
            tool_calls=[RING],
        ),
        AIMessage(
            [
                {"type": "thinking", "thinking": "Hmm.", "signature": "x"},
                {"type": "text", "text": "Yes."},
                {"type": "tool_use", "id": "c1", "name": "ring", "input": {"times": 2}},
            ],
            response_metadata={"model_provider": "anthropic"},
        ),
        AIMessageChunk(
            "Yes.",
            tool_call_chunks=[{"name": "ring", "args": '{"times": 2}', "id": "c1", "index": 0}],
            additional_kwargs={"reasoning_content": "Hmm."},
            chunk_position="last",
        ),
    ],
)
def test_an_answer_is_the_same_in_every_form(message):
    found = one(message)
    assert spoken(found) == ("Yes.", "Hmm.")
    assert found.calls == (ToolCall("ring", {"times": 2}, "c1"),)


def test_calls_without_ids_are_kept_apart():
    calls = [{"name": "ring", "args": {"times": n}, "id": None} for n in (1, 2)]
    assert [call.arguments for call in one(AIMessage("", tool_calls=calls)).calls] == [{"times": 1}, {"times": 2}]


def test_openai_dicts():
    told = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Ring"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ring", "arguments": '{"times": 2}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    assert conversation(convert_to_messages(told)) == [
        Message.system("Be brief."),
        Message.user("Ring"),
        Message("assistant", (), (ToolCall("ring", {"times": 2}, "c1"),)),
        Message.tool("done", id="c1"),
    ]


def test_a_call_that_was_none_is_told_as_words():
    broken = {"name": "ring", "args": "call:ring{ti", "id": "c1", "error": "cut off", "type": "invalid_tool_call"}
    assert one(AIMessage("Yes. ", invalid_tool_calls=[broken])).texts == ["Yes. ", "call:ring{ti"]


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage([{"type": "telepathy", "value": 1}]),
        AIMessage([{"type": "server_tool_call", "name": "web_search", "args": {}, "id": "x"}]),
        HumanMessage([{"type": "reasoning", "reasoning": "I am no model"}]),
        HumanMessage([{"type": "non_standard", "value": {"type": "non_standard", "value": {}}}]),
        AIMessage([{"type": "tool_use", "id": "c1", "name": "ring", "input": "x"}]),
        AIMessage([{"type": "tool_use", "id": "c1", "name": "", "input": {}}]),
        RemoveMessage(id="x"),
        ChatMessage(role="narrator", content="Once upon a time"),
    ],
)
def test_what_means_nothing_is_refused(message):
    with pytest.raises(InputError, match=r"messages\[0\]"):
        conversation([message])
    assert isinstance(InputError("x"), ValueError)


def test_thoughts_are_parts():
    assert one(AIMessage("Yes.", additional_kwargs={"reasoning_content": "Hmm."})).content == (
        Thinking("Hmm."),
        Text("Yes."),
    )
