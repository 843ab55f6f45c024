"""OpenAI's ``/v1/chat/completions``: requests, and answers whole or as chunks."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from langchain_gemma_jax.chat.answering.messages_out import Chunks, unrepairable, whole
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.chat_messages import chat_messages
from langchain_gemma_jax.server.apis.fields import as_object, as_text, as_truth, refuse_unknown
from langchain_gemma_jax.server.apis.openai_parts import (
    AS_THEY_ARE,
    EVENTS,
    NO_EFFECT,
    checked_functions,
    data_event,
    new_id,
    sampling_settings,
    thinks,
)
from langchain_gemma_jax.server.apis.side_by_side import all_of, answer_count, as_they_come, seed_of

_KNOWN = {
    "model", "messages", "tools", "tool_choice", "response_format", "stop", "max_tokens", "max_completion_tokens",
    "n", "stream", "logprobs", "logit_bias", "parallel_tool_calls", "reasoning_effort", *AS_THEY_ARE, *NO_EFFECT,
}  # fmt: skip
_END = b"data: [DONE]\n\n"


class ChatCompletions:
    """Answers to conversations, by ``/v1/chat/completions``."""

    streams_as = EVENTS

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or in the pieces of a stream.

        Raises:
            InputError: a field is unknown, or its value is not possible.
        """
        count = answer_count(body.get("n"))
        messages, asked = _asked(body, caller)
        streams = as_truth(body.get("stream"), "stream")
        shown = as_object(body.get("stream_options") or {}, "stream_options")
        usage = as_truth(shown.get("include_usage"), "stream_options.include_usage")
        seeds = [{"seed": seed_of(asked.seed, number)} for number in range(count)]
        begun = [caller.begin(messages, asked.model_copy(update=seed)) for seed in seeds]
        if streams:
            return _stream(begun, _head("chat.completion.chunk", asked), usage=usage)
        return _whole(begun, _head("chat.completion", asked))


def _asked(body: dict[str, Any], caller: Caller) -> tuple[list[BaseMessage], Options]:
    refuse_unknown(body, _KNOWN)
    given: dict[str, Any] = {"model": as_text(body.get("model"), "model"), **sampling_settings(body)}
    given["max_tokens"] = body.get("max_completion_tokens", body.get("max_tokens"))
    if body.get("tools"):
        given["tools"] = checked_functions(body["tools"], flat=False)
    for name in ("tool_choice", "response_format", "stop", "logprobs", "parallel_tool_calls"):
        if body.get(name) is not None:
            given[name] = body[name]
    if (asked_format := body.get("response_format")) is not None:
        as_object(asked_format, "response_format")
    given["thinking"] = thinks(body.get("reasoning_effort"), "reasoning_effort")
    return chat_messages(body.get("messages")), caller.options(given)


async def _whole(begun: Sequence[CallStart], head: dict[str, Any]) -> dict[str, Any]:
    answers = [whole(found) for found in await all_of([awhole_answer(each) for each in begun])]
    choices = [_choice(number, answer) for number, answer in enumerate(answers)]
    return {**head, "choices": choices, "usage": _together([_usage(answer) for answer in answers])}


def _choice(number: int, answer: AIMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if thought := answer.additional_kwargs.get("reasoning_content"):
        message["reasoning_content"] = thought
    if calls := _calls(answer):
        message["tool_calls"] = calls
    elif message["content"] is None:
        message["content"] = ""
    return {
        "index": number,
        "message": message,
        "logprobs": answer.response_metadata.get("logprobs"),
        "finish_reason": answer.response_metadata["finish_reason"],
    }


async def _stream(begun: Sequence[CallStart], head: dict[str, Any], *, usage: bool) -> AsyncGenerator[bytes, None]:
    silent, used = set(range(len(begun))), list[dict[str, Any] | None]()
    coming = as_they_come([astream(each, Chunks(as_blocks=False)) for each in begun])
    async with aclosing(coming) as chunks:
        async for number, chunk in chunks:
            delta = ({"role": "assistant", "content": ""} if number in silent else {}) | _delta(chunk)
            silent.discard(number)
            last = chunk.chunk_position == "last"
            choice = {
                "index": number,
                "delta": delta,
                "logprobs": chunk.response_metadata.get("logprobs"),
                "finish_reason": chunk.response_metadata["finish_reason"] if last else None,
            }
            yield data_event(head | {"choices": [choice]} | ({"usage": None} if usage else {}))
            if last:
                used.append(_usage(chunk))
    if usage:
        yield data_event(head | {"choices": [], "usage": _together(used)})
    yield _END


def _head(kind: str, asked: Options) -> dict[str, Any]:
    return {
        "id": new_id("chatcmpl-"),
        "object": kind,
        "created": int(time.time()),
        "model": asked.model,
        "system_fingerprint": None,
    }


def _delta(chunk: AIMessageChunk) -> dict[str, Any]:
    found: dict[str, Any] = {"content": chunk.content} if chunk.content else {}
    if thought := chunk.additional_kwargs.get("reasoning_content"):
        found["reasoning_content"] = thought
    for call in chunk.tool_call_chunks:
        begun = {"id": call["id"], "type": "function"} if call["id"] is not None else {}
        name = {"name": call["name"]} if call["name"] is not None else {}
        function = {**name, "arguments": call["args"] or ""}
        found.setdefault("tool_calls", []).append({"index": call["index"], **begun, "function": function})
    return found


def _calls(answer: AIMessage) -> list[dict[str, Any]]:
    """Return an answer's calls of tools. The arguments of a broken one get an end that no parser takes for JSON."""
    written = [(call["name"], json.dumps(call["args"], ensure_ascii=False), call["id"]) for call in answer.tool_calls]
    for call in answer.invalid_tool_calls:
        raw = call["args"] or ""
        written.append((call["name"] or "", raw + unrepairable(raw), call["id"]))
    return [
        {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments, number in written
    ]


def _together(usages: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the tokens of all answers to one request."""
    known = [each for each in usages if each is not None]
    if len(known) < 2:
        return known[0] if known else None
    return {
        name: {part: sum(each[name][part] for each in known) for part in value}
        if isinstance(value, dict)
        else sum(each[name] for each in known)
        for name, value in known[0].items()
    }


def _usage(answer: AIMessage) -> dict[str, Any] | None:
    used = answer.usage_metadata
    if used is None:
        return None
    return {
        "prompt_tokens": used["input_tokens"],
        "completion_tokens": used["output_tokens"],
        "total_tokens": used["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": used["input_token_details"]["cache_read"]},
        "completion_tokens_details": {"reasoning_tokens": used["output_token_details"]["reasoning"]},
    }
