"""LangChain's messages as the ones that chat formats render: one for one, in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_gemma_jax.chat.history.content_blocks import read_blocks
from langchain_gemma_jax.dialects import Json, Message, Text, Thinking, ToolCall, result_value
from langchain_gemma_jax.errors import InputError

_ROLES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "model": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
}


def conversation(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return LangChain's messages as dialects know them, one for one.

    Names of speakers, artifacts of tools and hints about caching are not for the model, and are left out.

    Raises:
        InputError: a message holds what no model of text is told: an image, a sound, a file, another server's tool.
    """
    found: list[Message] = []
    ruins: set[str | None] = set()  # the ids of what is no call, where nothing else was called
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if isinstance(message, AIMessage):
            found.append(_message(message, where))
            ruins = set() if found[-1].calls else {call["id"] for call in message.invalid_tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in ruins:
            # Agents answer such a call with an error. To the model it was words, and so is this.
            found.append(Message.user(_words(message, where, between="\n")))
        else:
            found.append(_message(message, where))
    return found


def _message(message: BaseMessage, where: str) -> Message:
    match message:
        case ToolMessage():
            value = result_value(_words(message, where, between="\n"))
            failed = message.status == "error"
            return Message.tool(value, id=message.tool_call_id or None, name=message.name, is_error=failed)
        case FunctionMessage():
            return Message.tool(result_value(_words(message, where, between="\n")), name=message.name)
        case AIMessage():
            return _answer(message, where)
        case SystemMessage():
            return Message.system(*read_blocks(message, where).texts)
        case HumanMessage():
            return Message.user(*read_blocks(message, where).texts)
        case ChatMessage():
            return _message(_with_role(message, where), where)
        case _:
            raise InputError(f"{where}: a {type(message).__name__} is nothing that can be told to a model.")


def _words(message: BaseMessage, where: str, between: str) -> str:
    return between.join(read_blocks(message, where).texts)


def _answer(message: AIMessage, where: str) -> Message:
    found = read_blocks(message, where)
    calls = {call["id"] or f"#{number}": call for number, call in enumerate(message.tool_calls)}
    for call in found.calls:  # those that are blocks of the content, and nothing else
        calls.setdefault(call["id"] or "", call)
    # What could not be understood as a call stays in the conversation as the words that it is.
    ruins = [Text(call["args"]) for call in message.invalid_tool_calls if call["args"]]
    return Message(
        "assistant",
        (*found.parts, *ruins),
        tuple(ToolCall(call["name"], _arguments(call["args"], where), call["id"]) for call in calls.values()),
    )


def _arguments(arguments: object, where: str) -> Mapping[str, Json]:
    if not isinstance(arguments, Mapping):
        raise InputError(f"{where}: a call's arguments are an object; found {type(arguments).__name__}.")
    return arguments


def _with_role(message: ChatMessage, where: str) -> BaseMessage:
    kind = _ROLES.get(message.role.lower())
    if kind is None:
        raise InputError(f"{where}: expected one of the roles {', '.join(_ROLES)}; found {message.role!r}.")
    return kind(content=message.content)


def spoken(message: Message) -> tuple[str, str]:
    """Return what an answer says and what it thinks, in however many parts."""
    said = "".join(part.text for part in message.content if isinstance(part, Text))
    return said, "".join(part.text for part in message.content if isinstance(part, Thinking))
