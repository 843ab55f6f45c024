"""The content of a message, in any form that LangChain's users and other models' packages write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages import ToolCall as LangChainCall

from langchain_gemma_jax.dialects import MediaPart, Text, Thinking
from langchain_gemma_jax.errors import InputError, MediaError
from langchain_gemma_jax.media.block_forms import is_media, media_block

_IN_FIELDS = {"tool_call_chunk", "invalid_tool_call", "tool_call_chunks"}  # in fields of their own
_SHOW = {"human", "tool", "function"}  # whose messages may hold images and sounds
_HIDDEN = {"redacted_thinking"}  # thoughts that only their own server can read


@dataclass
class Blocks:
    """The parts and the calls in a message's content."""

    parts: list[Text | Thinking | MediaPart] = field(default_factory=list)
    calls: list[LangChainCall] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.parts if isinstance(part, Text)]

    @property
    def media(self) -> list[MediaPart]:
        return [part for part in self.parts if isinstance(part, MediaPart)]


def read_blocks(message: BaseMessage, where: str) -> Blocks:
    """Return a message's content. ``where`` is how an error names the message.

    Images, sounds and documents are read here: LangChain reads them differently for each package that wrote them.

    Raises:
        InputError: the content holds something that no model reads. MediaError: an image or a sound has an unknown
            form, or is in a message that may hold none.
    """
    found = Blocks()
    if isinstance(message.content, str) and not message.additional_kwargs:
        if message.content:
            found.parts.append(Text(message.content))
        return found
    content = message.content
    if not (isinstance(content, list) and any(isinstance(each, dict) and _is_media(each) for each in content)):
        for block in message.content_blocks:
            _read(found, block, message.type, where)
        return found
    for number, each in enumerate(content):
        if isinstance(each, dict) and _is_media(each):
            at = f"{where}.content[{number}]"
            if message.type not in _SHOW:
                raise MediaError(
                    at, "images and sounds are shown to a model by users and tools alone. Put it into a HumanMessage"
                )
            found.parts.append(MediaPart(media_block(_inner(each), at)))
        else:
            for block in HumanMessage([each]).content_blocks:
                _read(found, block, message.type, where)
    return found


def _is_media(block: Mapping[str, object]) -> bool:
    return is_media(_inner(block))


def _inner(block: Mapping[str, object]) -> Mapping[str, object]:
    """Return the block that another company's package wrapped, or the block itself."""
    value = block.get("value")
    return value if block.get("type") == "non_standard" and isinstance(value, Mapping) else block


def _read(into: Blocks, block: Mapping[str, object], speaker: str, where: str) -> None:
    kind = block.get("type")
    by_model = speaker in {"ai", "AIMessageChunk"}
    match kind:
        case "text" | "text-plain" if isinstance(text := block.get("text"), str):
            into.parts.append(Text(text))
        case "refusal" if isinstance(text := block.get("refusal"), str):
            into.parts.append(Text(text))
        case "reasoning" | "thinking" if by_model:
            thought = block.get(str(kind))
            if isinstance(thought, str) and thought:
                into.parts.append(Thinking(thought))
        case "tool_call" if by_model:
            into.calls.append(_call(block.get("name"), block.get("args"), block.get("id"), where))
        case "tool_use" if by_model:
            into.calls.append(_call(block.get("name"), block.get("input"), block.get("id"), where))
        case "non_standard" if isinstance(value := block.get("value"), Mapping):
            _read_other(into, value, speaker, where)
        case _ if kind in _IN_FIELDS or kind in _HIDDEN:
            pass
        case "text" | "text-plain":
            raise _textless(str(kind), block.get("text"), where)
        case _:
            raise InputError(
                f"{where} holds a block of type {kind!r}, which means nothing to this model. Leave it out, or say in a "
                "block of type 'text' what is in it."
            )


def _textless(kind: str, text: object, where: str) -> InputError:
    found = "no text" if text is None else f"{type(text).__name__} as its text"
    advice = " Of bytes, text.decode() makes one." if isinstance(text, bytes | bytearray) else ""
    return InputError(f"{where} holds a block of type {kind!r} with {found}: expected a str.{advice}")


def _read_other(into: Blocks, value: Mapping[str, object], speaker: str, where: str) -> None:
    if "cachePoint" in value or value.get("type") == "cache_point":
        return  # where another server is to cache: here everything is
    if value.get("type") == "non_standard":
        raise InputError(f"{where} holds a block in a block in a block. Say in a block of type 'text' what is in it.")
    _read(into, value, speaker, where)


def _call(name: object, arguments: object, number: object, where: str) -> LangChainCall:
    if not isinstance(name, str) or not name:
        raise InputError(f"{where} holds a call without a tool's name.")
    if not isinstance(arguments, dict):
        raise InputError(f"{where}: a call's arguments are an object; found {type(arguments).__name__}.")
    return LangChainCall(name=name, args=arguments, id=number if isinstance(number, str) else None, type="tool_call")
