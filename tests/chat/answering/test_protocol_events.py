"""Events of LangChain's newest streams: native, and equal in content to what is invoked and to the chunks."""

from __future__ import annotations

from functools import reduce
from operator import add

import pytest
from langchain_core.messages import AIMessage
from langchain_tests.utils.stream_lifecycle import assert_valid_event_stream

from langchain_gemma_jax.chat.answering import protocol_events
from langchain_gemma_jax.chat.answering.answer_parts import AnswerPart
from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents
from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, TextDelta

pytestmark = [
    pytest.mark.skipif(not protocol_events.understood(), reason="this langchain-core makes events of chunks"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning"),
]

CALL = '<|tool_call>call:weather{city:<|"|>Rome<|"|>}<tool_call|>'
BROKEN = '<|tool_call>call:weather{city:<|"|>Rome}<tool_call|>'
ANSWERS = {
    "words": "Hello there.<turn|>",
    "thoughts": "<|channel>thought\nHm.<channel|>Hello.<turn|>",
    "a call": f"{CALL}<|tool_response>",
    "words and calls": f"Well.{CALL}{CALL.replace('Rome', 'Oslo')}<|tool_response>",
    "no call": f"{BROKEN}<|tool_response>",
    "a call and none": f"{CALL}{BROKEN}<|tool_response>",
}


def weather(city: str) -> str:
    """The weather in a city."""
    return city


def plain(blocks) -> list[dict]:
    """Content without what differs from call to call, or belongs to chunks alone."""
    return [{key: value for key, value in block.items() if key not in {"id", "index", "error"}} for block in blocks]


def meta(message: AIMessage) -> dict:
    return {key: value for key, value in message.response_metadata.items() if key not in {"timings", "output_version"}}


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("answer", ANSWERS)
async def test_events_say_what_invoke_and_chunks_say(answer, at_once, scripted):
    model, _ = scripted(*[ANSWERS[answer]] * 4, at_once=at_once, thinking=answer == "thoughts", output_version="v1")
    bound = model.bind_tools([weather]) if "call" in answer else model
    whole = bound.invoke("Hi")
    chunks = reduce(add, bound.stream("Hi"))
    stream = bound.stream_events("Hi", version="v3")
    events = list(stream)
    assert_valid_event_stream(events)
    again = await bound.astream_events("Hi", version="v3")
    also = [event async for event in again]
    assert [event["event"] for event in also] == [event["event"] for event in events]
    for found in (stream.output, await again.output):
        assert plain(found.content_blocks) == plain(chunks.content_blocks) or found.invalid_tool_calls
        assert [call["args"] for call in found.tool_calls] == [call["args"] for call in whole.tool_calls]
        assert [(call["args"], call["error"]) for call in found.invalid_tool_calls] == [
            (call["args"], call["error"]) for call in whole.invalid_tool_calls
        ]
        assert found.text == whole.text == chunks.text
        assert found.usage_metadata == whole.usage_metadata == chunks.usage_metadata
        assert meta(found) == meta(whole) == meta(chunks)
        assert found.id.startswith("lc_run-")


def test_the_events_are_native_and_come_one_by_one(scripted, monkeypatch):
    model, _ = scripted("one two three<turn|>")
    monkeypatch.setattr(type(model), "_stream", None)
    seen = [event["event"] for event in model.stream_events("Hi", version="v3")]
    assert seen[:2] == ["message-start", "content-block-start"]
    assert seen[-2:] == ["content-block-finish", "message-finish"]
    assert seen.count("content-block-delta") >= 3


def test_log_probabilities_are_told(scripted):
    model, _ = scripted("one two<turn|>", "one two<turn|>", logprobs=True)
    stream = model.stream_events("Hi", version="v3")
    list(stream)
    assert stream.output.response_metadata["logprobs"] == model.invoke("Hi").response_metadata["logprobs"]


def test_a_call_that_an_error_ends_is_none():
    events = ProtocolEvents("lc_run--1")
    told = events.of(AnswerPart([TextDelta("Well. "), CallBegin("weather"), ArgumentsDelta('{"city": "Ro')]))
    (end,) = events.broken()
    assert_valid_event_stream([*told, end])
    assert end["content"]["type"] == "invalid_tool_call"
    assert end["content"]["args"] == '{"city": "Ro'
    assert events.broken() == []


def test_an_older_langchain_makes_events_of_chunks(scripted, monkeypatch):
    monkeypatch.setattr(protocol_events, "VERSION", "1.7.9")
    model, _ = scripted("one two<turn|>")
    assert model._stream_chat_model_events is None
    assert model._astream_chat_model_events is None
    stream = model.stream_events("Hi", version="v3")
    list(stream)
    assert stream.output.text == "one two"
