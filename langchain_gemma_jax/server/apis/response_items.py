"""Requests of OpenAI's ``/v1/responses`` as LangChain's messages and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import (
    as_arguments,
    as_blocks,
    as_list,
    as_object,
    as_text,
    as_truth,
    refuse_unknown,
    texts_or_blocks,
)
from langchain_gemma_jax.server.apis.openai_parts import (
    AS_THEY_ARE,
    NO_EFFECT,
    checked_functions,
    sampling_settings,
    thinks,
)
from langchain_gemma_jax.stopping import looking

_KNOWN = {
    "model", "input", "instructions", "tools", "tool_choice", "text", "max_output_tokens", "stream", "reasoning",
    "parallel_tool_calls", "previous_response_id", "truncation", "background", "conversation", "prompt", "stop",
    "logit_bias", "max_tool_calls", *AS_THEY_ARE, *NO_EFFECT,
}  # fmt: skip
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_STORED = ("previous_response_id", "conversation", "prompt")


def response_request(body: Mapping[str, Any], caller: Caller) -> tuple[list[BaseMessage], Options]:
    """Return a request's messages and options.

    Raises:
        InputError: a field is unknown, or its value is not possible. The message names the field.
    """
    refuse_unknown(body, _KNOWN)
    for name in _STORED:
        if body.get(name) is not None:
            raise InputError(f"{name}: this server stores nothing. Send the whole conversation as input.")
    if as_truth(body.get("background"), "background"):
        raise InputError("background: this server answers while its client waits. Leave it out.")
    if body.get("truncation") not in (None, "disabled"):
        raise InputError("truncation: nothing is cut off here. Leave it out, and shorten the input yourself.")
    given: dict[str, Any] = {"model": as_text(body.get("model"), "model"), **sampling_settings(body)}
    given["max_tokens"] = body.get("max_output_tokens")
    if body.get("tools"):
        given["tools"] = checked_functions(body["tools"], flat=True)
    for name in ("tool_choice", "parallel_tool_calls", "stop"):
        if body.get(name) is not None:
            given[name] = body[name]
    given["thinking"] = thinks(as_object(body.get("reasoning") or {}, "reasoning").get("effort"), "reasoning.effort")
    form = as_object(body.get("text") or {}, "text").get("format")
    if form is not None:
        given["response_format"] = as_object(form, "text.format")
    return response_input(body.get("instructions"), body.get("input")), caller.options(given)


def response_input(instructions: object, items: object) -> list[BaseMessage]:
    """Return a conversation.

    Raises:
        InputError: the fields hold no conversation.
    """
    found: list[BaseMessage] = [SystemMessage(as_text(instructions, "instructions"))] if instructions else []
    if isinstance(items, str):
        return [*found, HumanMessage(items)]
    listed = as_list(items, "input")
    if not listed:
        raise InputError("input: expected a text, or one item at least.")
    answer = _Answer()
    for number, each in enumerate(looking(listed)):
        _add(found, answer, as_object(each, f"input[{number}]"), f"input[{number}]")
    answer.end(found)
    return found


@dataclass
class _Answer:
    """The thoughts, texts and calls of one message of an assistant, collected from consecutive items."""

    thoughts: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    def end(self, messages: list[BaseMessage]) -> None:
        """Add the message to a conversation, unless it is empty, and begin a new one."""
        if self.thoughts or self.texts or self.calls:
            thought = {"reasoning_content": "".join(self.thoughts)} if self.thoughts else {}
            messages.append(AIMessage("".join(self.texts), tool_calls=self.calls, additional_kwargs=thought))
            self.thoughts, self.texts, self.calls = [], [], []


def _add(messages: list[BaseMessage], answer: _Answer, item: dict[str, Any], where: str) -> None:
    """Add an item to the conversation, or to the assistant's message that is still being collected."""
    match item.get("type", "message"):
        case "message":
            role = item.get("role")
            blocks = as_blocks(item.get("content"), f"{where}.content", _TEXTS, shows=role == "user")
            if role == "assistant":
                words = "".join(block["text"] for block in blocks)
                if words and answer.calls:
                    answer.end(messages)
                answer.texts.append(words)
            elif role in ("user", "system", "developer"):
                answer.end(messages)
                messages.append(HumanMessage(blocks) if role == "user" else SystemMessage(blocks))  # type: ignore[arg-type]
            else:
                raise InputError(f"{where}.role: expected user, assistant, system or developer; found {role!r:.60}.")
        case "function_call":
            call = {
                "name": as_text(item.get("name"), f"{where}.name"),
                "args": as_arguments(item.get("arguments"), f"{where}.arguments"),
                "id": as_text(item.get("call_id"), f"{where}.call_id"),
                "type": "tool_call",
            }
            answer.calls.append(call)
        case "function_call_output":
            answer.end(messages)
            output = item.get("output")
            text = texts_or_blocks(as_blocks(output, f"{where}.output", _TEXTS, shows=True))
            messages.append(ToolMessage(text, tool_call_id=as_text(item.get("call_id"), f"{where}.call_id")))
        case "reasoning":
            parts = as_list(item.get("content") or [], f"{where}.content")
            thought = "".join(as_text(as_object(part, where).get("text"), f"{where}.content.text") for part in parts)
            if thought:
                answer.thoughts.append(thought)
        case kind:
            raise InputError(
                f"{where}.type: expected message, function_call, function_call_output or reasoning; found {kind!r:.60}."
            )
