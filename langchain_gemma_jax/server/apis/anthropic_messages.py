"""Requests of Anthropic's ``/v1/messages`` as LangChain's messages and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import (
    MOST_TOOLS,
    as_blocks,
    as_list,
    as_object,
    as_text,
    as_truth,
    refuse_unknown,
    texts_or_blocks,
)
from langchain_gemma_jax.stopping import looking

_KNOWN = {
    "model", "messages", "system", "max_tokens", "tools", "tool_choice", "stop_sequences", "temperature", "top_p",
    "top_k", "stream", "thinking", "metadata", "service_tier", "output_config", "output_format", "betas", "container",
    "cache_control", "inference_geo", "speed",
}  # fmt: skip
_TEXT = {"text": "text"}
_UNREAD = {"redacted_thinking"}


def anthropic_request(body: Mapping[str, Any], caller: Caller, *, counts: bool) -> tuple[list[BaseMessage], Options]:
    """Return a request's messages and options. ``counts``: it asks for the number of tokens only.

    Raises:
        InputError: a field is unknown, or its value is not possible. The message names the field.
    """
    refuse_unknown(body, _KNOWN)
    given: dict[str, Any] = {"model": as_text(body.get("model"), "model")}
    if not counts and body.get("max_tokens") is None:
        raise InputError("max_tokens: expected a whole number from 1. This API wants it said.")
    given |= {
        name: body[name] for name in ("max_tokens", "temperature", "top_p", "top_k") if body.get(name) is not None
    }
    if body.get("stop_sequences"):
        given["stop"] = as_list(body["stop_sequences"], "stop_sequences")
    if body.get("tools"):
        given["tools"] = [
            _tool(each, f"tools[{n}]") for n, each in enumerate(as_list(body["tools"], "tools", MOST_TOOLS))
        ]
    if (choice := body.get("tool_choice")) is not None:
        choice = as_object(choice, "tool_choice")
        if as_truth(choice.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use"):
            given["parallel_tool_calls"] = False
        given["tool_choice"] = _choice(choice)
    thinking = as_object(body.get("thinking") or {"type": "disabled"}, "thinking")
    given["thinking"] = thinking.get("type") in ("enabled", "adaptive")
    if (form := _form(body)) is not None:
        given["response_format"] = form
    return anthropic_conversation(body.get("system"), body.get("messages")), caller.options(given)


def anthropic_conversation(system: object, messages: object) -> list[BaseMessage]:
    """Return a conversation.

    Raises:
        InputError: the fields hold no conversation.
    """
    listed = as_list(messages, "messages")
    if not listed:
        raise InputError("messages: expected one at least.")
    found: list[BaseMessage] = []
    if system:
        found.append(SystemMessage(_text(system, "system")))
    for number, each in enumerate(looking(listed)):
        found += _message(as_object(each, f"messages[{number}]"), f"messages[{number}]")
    return found


def _message(message: dict[str, Any], where: str) -> list[BaseMessage]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise InputError(f"{where}.role: expected 'user' or 'assistant'; found {role!r:.60}.")
    if isinstance(content, str):
        kinds = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}
        return [kinds[role](content)]
    blocks = [(as_object(each, f"{where}.content[{n}]"), f"{where}.content[{n}]")
              for n, each in enumerate(as_list(content, f"{where}.content"))]  # fmt: skip
    if role == "assistant":
        return [_assistant(blocks)]
    results: list[BaseMessage] = [
        _result(block, place) for block, place in blocks if block.get("type") == "tool_result"
    ]
    parts = [(block, place) for block, place in blocks if block.get("type") != "tool_result"]
    texts: Any = [each for block, place in parts for each in as_blocks([block], place, _TEXT, shows=role == "user")]
    kind = SystemMessage if role == "system" else HumanMessage
    return [*results, *([kind(texts)] if texts or not results else [])]


def _assistant(blocks: list[tuple[dict[str, Any], str]]) -> AIMessage:
    texts, thoughts, calls = [], [], []
    for block, place in blocks:
        match block.get("type"):
            case "text":
                texts.append(as_text(block.get("text"), f"{place}.text"))
            case "thinking":
                thoughts.append(as_text(block.get("thinking"), f"{place}.thinking"))
            case "tool_use":
                name, number = as_text(block.get("name"), f"{place}.name"), as_text(block.get("id"), f"{place}.id")
                args = as_object(block.get("input"), f"{place}.input")
                calls.append({"name": name, "args": args, "id": number, "type": "tool_call"})
            case str(kind) if kind in _UNREAD:
                pass
            case kind:
                raise InputError(f"{place}.type: expected text, thinking or tool_use; found {kind!r:.60}.")
    thought = {"reasoning_content": "".join(thoughts)} if thoughts else {}
    return AIMessage("".join(texts), tool_calls=calls, additional_kwargs=thought)


def _result(block: dict[str, Any], where: str) -> ToolMessage:
    number = as_text(block.get("tool_use_id"), f"{where}.tool_use_id")
    wrong = as_truth(block.get("is_error"), f"{where}.is_error")
    content = as_blocks(block.get("content") or "", f"{where}.content", _TEXT, shows=True)
    text = texts_or_blocks(content, between="\n")
    return ToolMessage(text, tool_call_id=number, status="error" if wrong else "success")


def _text(value: object, where: str) -> str:
    return "\n".join(block["text"] for block in as_blocks(value, where, _TEXT))


def _tool(declared: object, where: str) -> dict[str, Any]:
    tool = as_object(declared, where)
    if tool.get("type") not in (None, "custom"):
        raise InputError(
            f"{where}: {tool.get('type')!r:.60} is a tool that another company's server runs. This one runs no tools: "
            "give a name, a description and an input_schema."
        )
    function: dict[str, Any] = {
        "name": as_text(tool.get("name"), f"{where}.name"),
        "description": as_text(tool.get("description") or "", f"{where}.description"),
        "parameters": as_object(tool.get("input_schema"), f"{where}.input_schema"),
    }
    if tool.get("strict") is not None:
        function["strict"] = as_truth(tool["strict"], f"{where}.strict")
    return {"type": "function", "function": function}


def _choice(choice: dict[str, Any]) -> str:
    match choice.get("type"):
        case "auto" | "any" | "none" as kind:
            return str(kind)
        case "tool":
            return as_text(choice.get("name"), "tool_choice.name")
    raise InputError(f"tool_choice.type: expected auto, any, tool or none; found {choice.get('type')!r:.60}.")


def _form(body: Mapping[str, Any]) -> dict[str, Any] | None:
    config = as_object(body.get("output_config") or {}, "output_config")
    form = config.get("format") or body.get("output_format")
    if form is None:
        return None
    form = as_object(form, "output_config.format")
    if form.get("type") != "json_schema":
        raise InputError(f"output_config.format.type: expected 'json_schema', found {form.get('type')!r:.60}.")
    return {
        "type": "json_schema",
        "json_schema": {"schema": as_object(form.get("schema"), "output_config.format.schema")},
    }
