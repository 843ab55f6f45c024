"""Gemma 1 to 3: turns of a user and a model only.

There is no system role: the system message goes before the user's first text, as in the published template of Gemma 3.
There are no tools either. The models can follow instructions, so tools are declared in plain text, called with JSON in
a fenced block, and their results come in a user's turn. That part is this package's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, TypeGuard

from langchain_gemma_jax.dialects.call_shapes import CallShape, FencedCalls
from langchain_gemma_jax.dialects.conversation.messages import MediaPart, Message, MessagePart, Text, Thinking, Tool
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter, RenderedPrompt
from langchain_gemma_jax.dialects.dialect import AS_USUAL, Dialect, RenderOptions, refuse_stray_results, results_after
from langchain_gemma_jax.dialects.fenced.fence_parser import OPENER, FenceParser
from langchain_gemma_jax.dialects.fenced.fenced_words import answered, called, declared
from langchain_gemma_jax.errors import InputError

TURN, TURN_END = "<start_of_turn>", "<end_of_turn>"
_BETWEEN = "\n\n"  # messages that share a turn


@dataclass
class _Turn:
    """A turn: the consecutive messages of one speaker."""

    role: str
    parts: list[tuple[str | MediaPart, ...]] = field(default_factory=list)  # of each message
    messages: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class GemmaDialect(Dialect):
    """The format of Gemma 1, 2, 3 and 3n."""

    name: ClassVar[str] = "gemma"
    stops: ClassVar[tuple[str, ...]] = (TURN_END, "<eos>")
    call_opener: ClassVar[str] = OPENER
    opener_is_control: ClassVar[bool] = False
    calls: ClassVar[CallShape] = FencedCalls()
    media_names: ClassVar[Mapping[str, str]] = MappingProxyType(dict.fromkeys(("image", "file"), "<start_of_image>"))
    media_apart: ClassVar[str] = "\n\n"

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """See ``Dialect.render``. Messages of one speaker that follow each other become one turn."""
        self.check(messages, options)
        refuse_stray_results(messages)
        first = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
        prefix = [text for message in messages[:first] for text in message.texts]
        if tools:
            prefix.append(declared(tools))
        turns = _turns(messages, first)
        if prefix and (not turns or turns[0].role != "user"):
            turns.insert(0, _Turn("user"))
        out, system = PromptWriter(), 0
        out.control("<bos>")
        for number, turn in enumerate(turns):
            out.control(TURN)
            out.text(f"{turn.role}\n")
            if number == 0 and prefix:
                out.text("".join(text + _BETWEEN for text in prefix))
                system = out.cut()
            start = out.cut()
            for place, parts in enumerate(turn.parts):
                out.text(_BETWEEN if place else "")
                for part in parts:
                    if isinstance(part, str):
                        out.text(part)
                    else:
                        self.show(out, part)
            if turn.role == "model" and len(turn.messages) == 1:
                out.wrote(turn.messages[0], start)
            out.control(TURN_END)
            out.text("\n")
            out.mark()
        if options.generation_prompt:
            out.control(TURN)
            out.text("model\n")
        return RenderedPrompt(tuple(out.pieces), system, tuple(out.marks), tuple(out.written), stops=self.stops)

    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> FenceParser:  # noqa: ARG002
        """See ``Dialect.parser``.

        Raises:
            InputError: ``in_thought`` is True, and these models have no thoughts.
        """
        if in_thought:
            raise InputError(f"in_thought: the format {self.name!r} has no thoughts.")
        return FenceParser(self.stops)


def _turns(messages: Sequence[Message], first: int) -> list[_Turn]:
    turns: list[_Turn] = []
    for index in range(first, len(messages)):
        message = messages[index]
        if message.role == "tool":
            continue  # written together
        _add(turns, "model" if message.role == "assistant" else "user", _spoken(message), index)
        if message.calls and (results := results_after(messages, index)):
            _add(turns, "user", (answered(results), *(part for _, result in results for part in result.media)), index)
    return turns


def _add(turns: list[_Turn], role: str, parts: tuple[str | MediaPart, ...], index: int) -> None:
    if not turns or turns[-1].role != role:
        turns.append(_Turn(role))
    turns[-1].parts.append(parts)
    turns[-1].messages.append(index)


def _spoken(message: Message) -> tuple[str | MediaPart, ...]:
    if message.calls:
        return (called("".join(text.strip() for text in message.texts), message.calls),)
    return tuple(part.text.strip() if isinstance(part, Text) else part for part in message.content if _shown(part))


def _shown(part: MessagePart) -> TypeGuard[Text | MediaPart]:
    return not isinstance(part, Thinking)
