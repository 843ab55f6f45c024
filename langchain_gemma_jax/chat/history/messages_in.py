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

from langchain_gemma_jax.chat.history.content_blocks import Blocks, read_blocks
from langchain_gemma_jax.chat.history.searches import SEARCH, searches_in
from langchain_gemma_jax.dialects import Json, Message, Text, Thinking, ToolCall, result_value
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.stopping import looking

_ROLES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "model": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
}

_SHOWN = 20  # ids of calls, in an error


def conversation(messages: Sequence[BaseMessage], *, piece: bool = False) -> list[Message]:
    """Return LangChain's messages as dialects render them, one for one; results in the order of their calls.

    An answer for which the model searched for deferred tools is several: see ``Search``.

    ``piece``: it is a part of a conversation, so that results may have lost their calls.

    Names of speakers, artifacts of tools and hints about caching are not for the model, and are left out.

    Raises:
        InputError: a message holds what no model reads, such as another server's tool.
        MediaError: an image, a sound or a file is of no form that is known.
    """
    found: list[Message] = []
    ruins: set[str | None] = set()  # the ids of invalid calls, if the message has no others
    for number, message in enumerate(looking(messages)):
        where = f"messages[{number}]"
        if isinstance(message, AIMessage):
            found.append(_message(message, where))
            ruins = set() if found[-1].calls else {call["id"] for call in message.invalid_tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in ruins:
            # Agents answer an invalid call with an error. The model reads the call as text, and so the error too.
            blocks = read_blocks(message, where)
            found.append(Message.user("\n".join(blocks.texts), *blocks.media))
        else:
            found.append(_message(message, where))
    ordered = _in_order_of_calls(found, [] if piece else messages)
    if not any(SEARCH in message.response_metadata for message in messages):
        return ordered
    return [part for number, each in enumerate(ordered) for part in _with_searches(each, messages[number])]


def _with_searches(answer: Message, source: BaseMessage) -> Sequence[Message]:
    """Return an answer behind the searches for tools that belong to it, each with its results."""
    searches = searches_in(source.response_metadata) if answer.role == "assistant" else ()
    words, thought = spoken(answer)
    texts, thoughts = ("".join(getattr(each, name) for each in searches) for name in ("text", "thinking"))
    if not searches or not (words.startswith(texts) and thought.startswith(thoughts)):  # its words were changed
        return [*(part for each in searches for part in each.without_words.messages), answer]
    rest = Message.assistant(words[len(texts) :], thinking=thought[len(thoughts) :], calls=answer.calls)
    return [*(part for each in searches for part in each.messages), rest]


def _in_order_of_calls(conversation: list[Message], messages: Sequence[BaseMessage]) -> list[Message]:
    """Return the conversation with results in the order of the calls that they answer: models match them by it.

    Raises:
        InputError: a result answers a call that was not made.
    """
    ordered: list[Message] = []
    results: list[Message] = []  # behind the last message that is none
    calls: Sequence[str | None] = ()
    known: set[str | None] = set()

    def add_results() -> None:
        places = {call: place for place, call in reversed(list(enumerate(calls))) if call is not None}
        last = len(calls)
        ordered.extend(sorted(results, key=lambda each: places.get(_answered(each) or "", last)))
        results.clear()

    for number, message in enumerate(looking(conversation)):
        if message.result is None:
            add_results()
            ordered.append(message)
            calls = [call.id for call in message.calls]
            known = {*calls, *_ruins(messages[number])} if messages and calls else set()
            continue
        if None not in known and known and message.result.id not in {None, *known}:
            raise InputError(
                f"messages[{number}] answers the call {message.result.id!r:.200}, and the calls before it are "
                f"{', '.join(map(repr, calls[:_SHOWN]))}{', …' if len(calls) > _SHOWN else ''}. Give the id of the "
                "call that it answers as tool_call_id."
            )
        results.append(message)
    add_results()
    return ordered


def _ruins(message: BaseMessage) -> set[str | None]:
    """Return the ids of a message's invalid calls, which agents answer with an error."""
    return {call["id"] for call in message.invalid_tool_calls} if isinstance(message, AIMessage) else set()


def _answered(message: Message) -> str | None:
    """Return the id of the call that a result answers."""
    return None if message.result is None else message.result.id


def _message(message: BaseMessage, where: str) -> Message:
    match message:
        case ToolMessage():
            found = read_blocks(message, where)
            failed = message.status == "error"
            number = message.tool_call_id or None
            return Message.tool(_value(found), id=number, name=message.name, is_error=failed, media=found.media)
        case FunctionMessage():
            found = read_blocks(message, where)
            return Message.tool(_value(found), name=message.name, media=found.media)
        case AIMessage():
            return _answer(message, where)
        case SystemMessage():
            return Message.system(*read_blocks(message, where).texts)
        case HumanMessage():
            return Message.user(*read_blocks(message, where).parts)
        case ChatMessage():
            return _message(_with_role(message, where), where)
        case _:
            raise InputError(f"{where}: a {type(message).__name__} cannot be shown to a model.")


def _value(blocks: Blocks) -> Json:
    return result_value("\n".join(blocks.texts))


def _answer(message: AIMessage, where: str) -> Message:
    found = read_blocks(message, where)
    calls = {call["id"] or f"#{number}": call for number, call in enumerate(message.tool_calls)}
    for call in found.calls:  # those that are blocks of the content, and nothing else
        calls.setdefault(call["id"] or "", call)
    # An invalid call stays in the conversation as text.
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
    """Return an answer's text and its thoughts, each joined from all parts."""
    words = "".join(part.text for part in message.content if isinstance(part, Text))
    return words, "".join(part.text for part in message.content if isinstance(part, Thinking))
