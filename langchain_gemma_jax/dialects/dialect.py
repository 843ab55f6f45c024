"""``Dialect``, the interface of every chat format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from langchain_gemma_jax.dialects.call_shapes import CallShape
from langchain_gemma_jax.dialects.conversation.messages import MediaPart, Message, Tool, ToolResult
from langchain_gemma_jax.dialects.conversation.output_events import StreamParser
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter, RenderedPrompt
from langchain_gemma_jax.errors import InputError, MediaError


@dataclass(frozen=True, kw_only=True)
class RenderOptions:
    """Options for rendering a conversation."""

    generation_prompt: bool = True
    """End with the beginning of the model's turn. Otherwise the prompt is the conversation as it is."""
    thinking: bool = False
    """Let the model think before it answers. Only for formats with ``dialect.thinks``."""
    keep_thoughts: bool = False
    """Show the model the thoughts of earlier turns that called tools. They are dropped otherwise."""
    text_after_calls: bool = False
    """Gemma 4: put the text of a message that also calls tools after the results, as the published template does.
    The model writes it before its calls, so that is where it is put by default. After the results it would end the turn
    that the model should continue, and most of the prompt would have to be read again."""


AS_USUAL = RenderOptions()


class Dialect(ABC):
    """A chat format: it turns conversations into prompts, and a model's output into events."""

    name: ClassVar[str]
    thinks: ClassVar[bool] = False
    turns: ClassVar[bool] = True  # False: there is one prompt and one answer, which the end of the text ends
    stops: ClassVar[tuple[str, ...]]  # control tokens with which a model ends what it writes
    call_opener: ClassVar[str]  # the beginning of a call
    opener_is_control: ClassVar[bool]  # True if that is a control token
    calls: ClassVar[CallShape]
    thought: ClassVar[tuple[str, str] | None] = None  # the control tokens around a thought
    thought_begins: ClassVar[str] = "thought\n"  # the text that follows the first of them
    media_names: ClassVar[Mapping[str, str]] = MappingProxyType({})  # the format's tokens for media, by their kind
    media_apart: ClassVar[str] = ""  # the text that the model's processor puts around each

    @abstractmethod
    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """Return the prompt for a conversation.

        Raises:
            InputError: the conversation cannot be rendered: it is empty, or a result belongs to no call.
        """

    @abstractmethod
    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> StreamParser:
        """Return a parser for one output.

        Args:
            in_thought: ``prompt.in_thought``: True if the prompt ended inside a thought.
            tools: the names of the tools that may be called. Calls of these are read in other notations too, where
                models of this format are known to write such.
        """

    def check(self, messages: Sequence[Message], options: RenderOptions) -> None:
        """Refuse a conversation that this format cannot render."""
        if not messages:
            raise InputError("messages: expected at least one, found none.")
        if options.thinking and not self.thinks:
            raise InputError(f"thinking: the format {self.name!r} has none. Leave it out, or use a Gemma 4 model.")
        for message in messages:
            for part in message.media:
                if part.block.kind not in self.media_names:
                    kinds = {"image": "images", "audio": "sounds"}.get(part.block.kind, "files")
                    raise MediaError(
                        part.block.at, f"the chat format {self.name!r} has no place for {kinds}. Describe in words "
                        "what is in it, or use a model that reads more than text",
                    )  # fmt: skip

    def show(self, out: PromptWriter, part: MediaPart) -> None:
        """Write an image, a sound or a document in this format."""
        out.medium(part, self.media_names[part.block.kind], self.media_apart)


def results_after(messages: Sequence[Message], index: int) -> list[tuple[str, ToolResult]]:
    """Return the results that directly follow the assistant's message ``index``, with the names of their tools."""
    calls = messages[index].calls
    names = {call.id: call.name for call in calls if call.id is not None}
    found: list[tuple[str, ToolResult]] = []
    for number in range(index + 1, len(messages)):
        result = messages[number].result
        if result is None:
            break
        name = names.get(result.id) if result.id is not None else None
        by_place = calls[len(found)].name if len(found) < len(calls) else "unknown"
        found.append((name or result.name or by_place, result))
    return found


def refuse_stray_results(messages: Sequence[Message]) -> None:
    """Refuse results that do not follow the message that called the tool. Only other results of it may be in between.

    Raises:
        InputError: a result does not.
    """
    calling = False
    for number, message in enumerate(messages):
        if message.role == "tool" and not calling:
            raise InputError(
                f"messages[{number}] is a tool's result, and no message that calls tools is directly before it. "
                "Keep results together with the message whose calls they answer; histories are often cut in between."
            )
        if message.role != "tool":
            calling = bool(message.calls)
