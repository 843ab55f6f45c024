"""OpenAI's ``/v1/responses``: answers as items, whole or as events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.live_answer import astream
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import as_truth
from langchain_gemma_jax.server.apis.openai_parts import EVENTS, named_event, new_id
from langchain_gemma_jax.server.apis.response_items import response_request

_ECHOED = (
    "instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "tool_choice", "tools",
    "top_p", "text", "reasoning",
)  # fmt: skip
_DEFAULTS: dict[str, Any] = {
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "metadata": {},
    "text": {"format": {"type": "text"}},
}


class Responses:
    """Answers to conversations. A whole answer is made of the same events as a stream."""

    streams_as = EVENTS

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or in the pieces of a stream.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
        messages, asked = response_request(body, caller)
        response = _begun(body, asked)
        streams = as_truth(body.get("stream"), "stream")
        return (_stream if streams else _whole)(caller.begin(messages, asked), response)


async def _whole(begun: CallStart, response: dict[str, Any]) -> dict[str, Any]:
    items = OutputItems()
    async with aclosing(astream(begun, ProtocolEvents(""))) as events:
        async for event in events:
            if event["event"] == "message-finish":
                return response | _ended(event, items)
            for _ in items.of(event):
                pass
    return response


async def _stream(begun: CallStart, response: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    items, number = OutputItems(), 0

    def event_of(name: str, value: Mapping[str, Any]) -> bytes:
        nonlocal number
        number += 1
        return named_event(name, {"type": name, "sequence_number": number - 1, **value})

    async with aclosing(astream(begun, ProtocolEvents(""))) as events:
        async for event in events:
            if event["event"] == "message-start":
                yield event_of("response.created", {"response": response})
                yield event_of("response.in_progress", {"response": response})
            elif event["event"] == "message-finish":
                whole = response | _ended(event, items)
                yield event_of(f"response.{whole['status']}", {"response": whole})
            else:
                for name, value in items.of(event):
                    yield event_of(name, value)


class OutputItems:
    """The items of an answer as events. A call of a tool is sent once it is whole; a broken one is sent as text."""

    def __init__(self) -> None:
        self.done: list[dict[str, Any]] = []
        self._item: dict[str, Any] = {}

    def of(self, event: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names and fields of OpenAI's events for one of this package's events."""
        match event["event"], event.get("content", event.get("delta", {})).get("type"):
            case "content-block-start", "text":
                yield from self._begin_text()
            case "content-block-delta", "text-delta":
                yield self._part("response.output_text.delta", delta=event["delta"]["text"], logprobs=[])
            case "content-block-finish", "text":
                yield from self._end_text(event["content"]["text"])
            case "content-block-start", "reasoning":
                yield self._begin({"id": new_id("rs_"), "type": "reasoning", "summary": [], "content": []})
            case "content-block-delta", "reasoning-delta":
                yield self._part("response.reasoning_text.delta", delta=event["delta"]["reasoning"])
            case "content-block-finish", "reasoning":
                text = event["content"]["reasoning"]
                yield self._part("response.reasoning_text.done", text=text)
                yield self._end(content=[{"type": "reasoning_text", "text": text}])
            case "content-block-finish", "tool_call":
                yield from self._call(event["content"])
            case "content-block-finish", "invalid_tool_call":  # as text, so that no client runs it
                yield from self._begin_text()
                yield self._part("response.output_text.delta", delta=event["content"]["args"] or "", logprobs=[])
                yield from self._end_text(event["content"]["args"] or "")

    def _begin_text(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield self._begin({"id": new_id("msg_"), "type": "message", "role": "assistant", "content": []})
        yield self._part("response.content_part.added", part=_text(""))

    def _end_text(self, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
        yield self._part("response.output_text.done", text=text, logprobs=[])
        yield self._part("response.content_part.done", part=_text(text))
        yield self._end(content=[_text(text)])

    def _call(self, call: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        arguments = json.dumps(call["args"], ensure_ascii=False)
        known = {"type": "function_call", "call_id": call["id"], "name": call["name"]}
        yield self._begin({"id": new_id("fc_"), **known, "arguments": ""})
        place = {"item_id": self._item["id"], "output_index": len(self.done)}
        yield "response.function_call_arguments.delta", {**place, "delta": arguments}
        yield "response.function_call_arguments.done", {**place, "name": call["name"], "arguments": arguments}
        yield self._end(arguments=arguments)

    def _begin(self, item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._item = item | {"status": "in_progress"}
        return "response.output_item.added", {"output_index": len(self.done), "item": self._item}

    def _part(self, name: str, **value: Any) -> tuple[str, dict[str, Any]]:
        return name, {"item_id": self._item["id"], "output_index": len(self.done), "content_index": 0, **value}

    def _end(self, **value: Any) -> tuple[str, dict[str, Any]]:
        item = self._item | {"status": "completed"} | value
        self.done.append(item)
        return "response.output_item.done", {"output_index": len(self.done) - 1, "item": item}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _begun(body: Mapping[str, Any], asked: Options) -> dict[str, Any]:
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": asked.model,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "usage": None,
        "store": False,
        **{name: body.get(name, _DEFAULTS.get(name)) for name in _ECHOED},
    }


def _ended(event: Mapping[str, Any], items: OutputItems) -> dict[str, Any]:
    used = event["usage"]
    cut = event["metadata"]["finish_reason"] == "length"
    return {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": items.done,
        "usage": {
            "input_tokens": used["input_tokens"],
            "input_tokens_details": {"cached_tokens": used["input_token_details"]["cache_read"]},
            "output_tokens": used["output_tokens"],
            "output_tokens_details": {"reasoning_tokens": used["output_token_details"]["reasoning"]},
            "total_tokens": used["total_tokens"],
        },
    }
