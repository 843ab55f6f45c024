"""Messages of Ollama's chats as LangChain's. Results of tools are matched with the calls before them."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.fields import as_list, as_object, as_text, refuse_unknown
from langchain_gemma_jax.stopping import looking

_KNOWN = {"role", "content", "thinking", "images", "tool_calls", "tool_name", "name", "tool_call_id"}
_ROLES = ("system", "user", "assistant", "tool")


def ollama_messages(messages: object) -> list[BaseMessage]:
    """Return a conversation.

    Raises:
        InputError: ``messages`` is no conversation. The message names the field.
    """
    found: list[BaseMessage] = []
    calls = OpenToolCalls()
    for number, each in enumerate(looking(as_list(messages, "messages"))):
        where = f"messages[{number}]"
        message = as_object(each, where)
        refuse_unknown(message, _KNOWN, f"{where}: ")
        found.append(_message(message, where, calls))
    return found


def shown(text: str, images: object, where: str) -> str | list[str | dict[Any, Any]]:
    """Return a text with images, which are base64.

    Raises:
        InputError: there is something else among the images.
    """
    listed = as_list([] if images is None else images, f"{where}images")
    blocks: list[str | dict[Any, Any]] = [
        {"type": "image", "base64": as_text(each, f"{where}images[{n}]")} for n, each in enumerate(listed)
    ]
    return [*blocks, {"type": "text", "text": text}] if blocks else text


class OpenToolCalls:
    """The calls of a conversation's last answer whose results are still to come. Ollama's results have no ids."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []  # id and name, in the order of the calls
        self._made = 0

    def make(self, name: str, given: str | None) -> str:
        """Return the id of a call: the one that its message has, or a new one."""
        self._made += 1
        number = f"call_{self._made}" if given is None else given
        self._open.append((number, name))
        return number

    def answered(self, name: str | None, given: str | None) -> str:
        """Return the id of the call that a result answers: by its id, else by its tool's name, else the first one.

        Where no call waits, it is empty.
        """
        fits = [
            (number, called)
            for number, called in self._open
            if (given is None or number == given) and (given is not None or name is None or called == name)
        ]
        if not fits:
            return given or ""
        self._open.remove(fits[0])
        return fits[0][0]

    def forget(self) -> None:
        """Begin another answer's calls."""
        self._open.clear()


def _message(message: dict[str, Any], where: str, calls: OpenToolCalls) -> BaseMessage:
    role = message.get("role")
    content = message.get("content")
    text = "" if content is None else as_text(content, f"{where}.content")
    images = message.get("images")
    if images and role not in ("user", "tool"):
        raise InputError(
            f"{where}.images: images are shown by users and tools alone: describe in words what is in them."
        )
    match role:
        case "system":
            return SystemMessage(text)
        case "user":
            return HumanMessage(shown(text, images, f"{where}."))
        case "assistant":
            calls.forget()
            thought = message.get("thinking")
            listed = as_list(message.get("tool_calls") or [], f"{where}.tool_calls")
            return AIMessage(
                text,
                tool_calls=[_call(each, f"{where}.tool_calls[{n}]", calls) for n, each in enumerate(listed)],
                additional_kwargs={} if not thought else {"reasoning_content": as_text(thought, f"{where}.thinking")},
            )
        case "tool":
            name, number = (
                None if message.get(field) is None else as_text(message[field], f"{where}.{field}")
                for field in ("name" if message.get("tool_name") is None else "tool_name", "tool_call_id")
            )
            return ToolMessage(
                shown(text, images, f"{where}."), tool_call_id=calls.answered(name, number or None), name=name
            )
    raise InputError(f"{where}.role: expected one of {', '.join(_ROLES)}; found {role!r:.60}.")


def _call(value: object, where: str, calls: OpenToolCalls) -> Any:
    call = as_object(value, where)
    function = as_object(call.get("function"), f"{where}.function")
    name = as_text(function.get("name"), f"{where}.function.name")
    given = call.get("id")
    return {
        "name": name,
        "args": as_object(
            {} if function.get("arguments") is None else function["arguments"], f"{where}.function.arguments"
        ),
        "id": calls.make(name, None if not given else as_text(given, f"{where}.id")),
        "type": "tool_call",
    }
