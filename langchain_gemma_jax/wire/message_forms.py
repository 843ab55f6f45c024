"""LangChain's messages as JSON, and back. A message is one of a few kinds, so no JSON can name a class to make."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import ValidationError

from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.media.allowed_files import allowed_file
from langchain_gemma_jax.media.block_forms import is_media, media_block
from langchain_gemma_jax.stopping import looking

_KINDS: dict[str, type[BaseMessage]] = {
    "system": SystemMessage,
    "human": HumanMessage,
    "ai": AIMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
_FIELDS = {  # of a message, for its prompt or a route's decision. A tool's artifact is for the caller alone.
    "content", "name", "id", "additional_kwargs", "response_metadata", "tool_calls", "invalid_tool_calls",
    "tool_call_id", "status", "role",
}  # fmt: skip


def to_json(value: object) -> bytes:
    """Return a value as JSON.

    Raises:
        InputError: something in it has no form in JSON.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"What is sent to a server has to be JSON: {error}.") from error


def messages_out(messages: Sequence[BaseMessage], folders: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a conversation in the form in which it is sent. Files are sent with it, if they are in these folders.

    Raises:
        InputError: a message is of a kind that has no place in a prompt. MediaError: a file may not be read, or the
            form of a block is unknown.
    """
    found = []
    for number, message in enumerate(messages):
        kind = next((name for name, each in _KINDS.items() if isinstance(message, each)), None)
        if kind is None:
            conversation([message])  # raises an error that says what is wrong with it
            raise InputError(f"A message of the type {message.type!r} cannot be sent to a server.")
        fields = {name: value for name in _FIELDS if (value := getattr(message, name, None))}
        if isinstance(content := fields.get("content"), list):
            at = f"messages[{number}].content"
            fields["content"] = [_sent(each, f"{at}[{n}]", folders) for n, each in enumerate(content)]
        if metadata := fields.get("response_metadata"):  # the log-probabilities of old answers are most of its bytes
            fields["response_metadata"] = {name: value for name, value in metadata.items() if name != "logprobs"}
        found.append({"type": kind} | fields)
    return found


def _sent(block: object, at: str, folders: Sequence[str]) -> object:
    """Return a block as JSON that another machine can read: with the bytes of a file instead of its path."""
    if not isinstance(block, dict) or not is_media(block):
        return block
    medium = media_block(block, at)
    if medium.form == "path":
        from langchain_gemma_jax.media.media_reader import MediaLimits  # here, as it needs NumPy

        with allowed_file(str(medium.value), folders, at) as file:
            data = file.read(MediaLimits().encoded_bytes)
    elif medium.form == "bytes" and isinstance(medium.value, bytes):
        data = medium.value
    else:
        return block
    return {"type": medium.kind, "base64": base64.b64encode(data).decode()}


MOST_MESSAGES = 10_000


def messages_in(listed: object) -> list[BaseMessage]:
    """Return the conversation that was sent.

    Raises:
        InputError: ``listed`` is no conversation.
    """
    if not isinstance(listed, list):
        raise InputError(f"messages: expected a list, found {type(listed).__name__}.")
    if len(listed) > MOST_MESSAGES:
        raise InputError(f"messages: expected at most {MOST_MESSAGES}, found {len(listed)}.")
    return [_message_in(number, each) for number, each in enumerate(looking(listed))]


def _message_in(number: int, item: object) -> BaseMessage:
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"messages[{number}]: expected an object with a type of {', '.join(_KINDS)}.")
    fields = {name: value for name, value in item.items() if name in _FIELDS}
    try:
        return _KINDS[kind](**{"content": "", **fields})
    except (ValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(f"messages[{number}]: {str(error)[:300]}") from error
