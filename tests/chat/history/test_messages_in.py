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
from langchain_gemma_jax.errors import InputError, MediaError

PIXEL = "iVBORw0KGgo="
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
    "block",
    [
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "audio", "base64": PIXEL, "mime_type": "audio/wav"},
        {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
        {"type": "file", "base64": PIXEL, "mime_type": "application/pdf"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}},
    ],
)
@pytest.mark.parametrize("kind", [HumanMessage, lambda content: ToolMessage(content, tool_call_id="c")])
def test_images_and_files_are_parts_of_what_users_and_tools_say(block, kind):
    message = kind([{"type": "text", "text": "Look"}, block, "and tell"])
    found = conversation([HumanMessage("a"), message], piece=True)[1]
    (part,) = found.media
    assert part.block.at == "messages[1].content[1]"
    if found.result is None:
        assert found.content == (Text("Look"), part, Text("and tell"))
    else:
        assert found.result.value == "Look\nand tell"
    for other in (AIMessage, SystemMessage):
        with pytest.raises(MediaError, match=r"messages\[0\].content\[0\]: .* by users and tools alone"):
            conversation([other([block])])


@pytest.mark.parametrize("block", [{"type": "video", "url": "https://example.org/a.mp4"}, {"type": "image"}])
def test_what_is_no_image_in_any_form_is_refused(block):
    with pytest.raises(MediaError, match=r"messages\[0\].content\[1\]: "):
        conversation([HumanMessage(["a", block])])


def test_a_text_in_the_place_of_a_file_is_a_text():
    blocks = [
        {"type": "file", "source_type": "text", "url": "a"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "b"}},
    ]
    assert one(HumanMessage(blocks)).texts == ["a", "b"]
    with pytest.raises(InputError, match="with no text: expected a str"):
        conversation([HumanMessage([{"type": "text-plain", "file_id": "x", "mime_type": "text/plain"}])])
    for text, says in (
        ({"text": b"Hi"}, "with bytes as its text: expected a str. Of bytes, text.decode() makes one."),
        ({"text": 3}, "with int as its text: expected a str."),
        ({}, "with no text: expected a str."),
    ):
        with pytest.raises(InputError) as caught:
            conversation([HumanMessage([{"type": "text", **text}])])
        assert str(caught.value) == f"messages[0] holds a block of type 'text' {says}"


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
