"""Answers in the form of Anthropic's API: whole, or as events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_gemma_jax.chat.answering.messages_out import whole
from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer
from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.chat.calling.token_counting import count_tokens
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.server.apis.anthropic_messages import anthropic_request
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import as_truth
from langchain_gemma_jax.server.apis.openai_parts import EVENTS, named_event, new_id
from langchain_gemma_jax.server.http.problems import Problem

_KINDS = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}  # fmt: skip
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class AnthropicForm:
    """Errors in the form of Anthropic's API."""

    def body(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""
        kind = _KINDS.get(problem.status, "invalid_request_error" if problem.status < 500 else "api_error")
        error = {"type": kind, "message": problem.message, "code": problem.code}
        return {"type": "error", "error": error, "request_id": new_id("req_")}

    def in_stream(self, problem: Problem) -> bytes:
        """Return the last event of a stream that broke off."""
        return named_event("error", self.body(problem))


class AnthropicMessages:
    """Answers to conversations, by ``/v1/messages``."""

    streams_as = EVENTS

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or in the pieces of a stream.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
        messages, asked = anthropic_request(body, caller, counts=False)
        streams = as_truth(body.get("stream"), "stream")
        return (_stream if streams else _whole)(caller.begin(messages, asked), _head(asked))


class AnthropicCount:
    """Counts of a conversation's tokens, by ``/v1/messages/count_tokens``."""

    streams_as = EVENTS

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]]:
        """Return the number of tokens that the conversation has as a prompt.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
        return _count(*anthropic_request(body, caller, counts=True))


async def _count(messages: list[BaseMessage], asked: Options) -> dict[str, Any]:
    return {"input_tokens": await abegin(partial(count_tokens, messages, asked), Clock(asked.timeout))}


async def _whole(begun: CallStart, head: dict[str, Any]) -> dict[str, Any]:
    answer = whole(await awhole_answer(begun))
    return head | {
        "content": list(_blocks(answer)),
        **_ending(answer.response_metadata),
        "usage": _usage(answer.usage_metadata or {}),
    }


async def _stream(begun: CallStart, head: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    events = BlockEvents()
    async with aclosing(astream(begun, ProtocolEvents(""))) as coming:
        async for event in coming:
            if event["event"] == "message-start":
                start = head | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": _usage({})}
                yield named_event("message_start", {"type": "message_start", "message": start})
            elif event["event"] == "message-finish":
                end = {"delta": _ending(event["metadata"]), "usage": _usage(event["usage"])}
                yield named_event("message_delta", {"type": "message_delta", **end})
                yield named_event("message_stop", {"type": "message_stop"})
            else:
                for name, value in events.of(event):
                    yield named_event(name, {"type": name, **value})


class BlockEvents:
    """The blocks of an answer as events. A call of a tool is sent once it is whole; a broken one is sent as text."""

    def __init__(self) -> None:
        self._index = -1

    def of(self, event: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names and fields of Anthropic's events for one of this package's events."""
        match event["event"], event.get("content", event.get("delta"))["type"]:
            case "content-block-start", "text":
                yield self._start({"type": "text", "text": ""})
            case "content-block-start", "reasoning":
                yield self._start({"type": "thinking", "thinking": "", "signature": ""})
            case "content-block-delta", "text-delta":
                yield self._delta({"type": "text_delta", "text": event["delta"]["text"]})
            case "content-block-delta", "reasoning-delta":
                yield self._delta({"type": "thinking_delta", "thinking": event["delta"]["reasoning"]})
            case "content-block-finish", "text" | "reasoning":
                yield "content_block_stop", {"index": self._index}
            case "content-block-finish", "tool_call":
                call = event["content"]
                yield self._start({"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": json.dumps(call["args"])})
                yield "content_block_stop", {"index": self._index}
            case "content-block-finish", "invalid_tool_call":
                yield self._start({"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": event["content"]["args"] or ""})
                yield "content_block_stop", {"index": self._index}

    def _start(self, block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._index += 1
        return "content_block_start", {"index": self._index, "content_block": block}

    def _delta(self, delta: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "content_block_delta", {"index": self._index, "delta": delta}


def _head(asked: Options) -> dict[str, Any]:
    return {"id": new_id("msg_"), "type": "message", "role": "assistant", "model": asked.model}


def _blocks(answer: AIMessage) -> Iterator[dict[str, Any]]:
    if thought := answer.additional_kwargs.get("reasoning_content"):
        yield {"type": "thinking", "thinking": thought, "signature": ""}
    if answer.text:
        yield {"type": "text", "text": str(answer.text)}
    for call in answer.tool_calls:
        yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
    for broken in answer.invalid_tool_calls:
        yield {"type": "text", "text": broken["args"] or ""}


def _ending(metadata: Mapping[str, Any]) -> dict[str, Any]:
    stop = metadata.get("stop")
    reason = _REASONS.get(metadata["finish_reason"], "end_turn")
    return {"stop_reason": reason if stop is None else "stop_sequence", "stop_sequence": stop}


def _usage(used: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of tokens. This API counts input tokens that came from a cache separately."""
    cached = used.get("input_token_details", {}).get("cache_read", 0)
    return {
        "input_tokens": used.get("input_tokens", 0) - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": used.get("output_tokens", 0),
    }
