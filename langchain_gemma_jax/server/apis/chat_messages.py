"""Messages of OpenAI's chat completions as LangChain's."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.fields import as_arguments, as_blocks, as_list, as_object, as_text, texts_or_blocks
from langchain_gemma_jax.stopping import looking

_TEXTS = {"text": "text", "refusal": "refusal"}
_ROLES = ("system", "developer", "user", "assistant", "tool")


def chat_messages(messages: object) -> list[BaseMessage]:
    """Return a conversation.

    Raises:
        InputError: ``messages`` is no conversation. The message names the field.
    """
    listed = as_list(messages, "messages")
    if not listed:
        raise InputError("messages: expected one at least.")
    return [_message(as_object(each, f"messages[{n}]"), f"messages[{n}]") for n, each in enumerate(looking(listed))]


def _message(message: dict[str, Any], where: str) -> BaseMessage:
    role, content = message.get("role"), message.get("content")
    shown = content if content is not None or role != "assistant" else ""
    blocks: Any = as_blocks(shown, f"{where}.content", _TEXTS, shows=role in ("user", "tool"))
    text: Any = content if isinstance(content, str) else blocks
    match role:
        case "system" | "developer":
            return SystemMessage(text)
        case "user":
            return HumanMessage(text)
        case "tool":
            number = as_text(message.get("tool_call_id"), f"{where}.tool_call_id")
            return ToolMessage(texts_or_blocks(blocks), tool_call_id=number)
        case "assistant":
            calls = as_list(message.get("tool_calls") or [], f"{where}.tool_calls")
            thought = message.get("reasoning_content") or message.get("reasoning")
            return AIMessage(
                "".join(block["text"] for block in blocks),
                tool_calls=[_call(each, f"{where}.tool_calls[{n}]") for n, each in enumerate(calls)],
                additional_kwargs={"reasoning_content": thought} if isinstance(thought, str) else {},
            )
    raise InputError(f"{where}.role: expected one of {', '.join(_ROLES)}; found {role!r:.60}.")


def _call(value: object, where: str) -> Any:
    call = as_object(value, where)
    function = as_object(call.get("function"), f"{where}.function")
    return {
        "name": as_text(function.get("name"), f"{where}.function.name"),
        "args": as_arguments(function.get("arguments"), f"{where}.function.arguments"),
        "id": as_text(call.get("id"), f"{where}.id"),
        "type": "tool_call",
    }
