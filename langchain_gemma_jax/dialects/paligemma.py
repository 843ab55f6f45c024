"""PaliGemma: a picture, a task in words, and an answer. There are no turns, and nothing follows the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from langchain_gemma_jax.dialects.call_shapes import CallShape, FencedCalls
from langchain_gemma_jax.dialects.conversation.messages import MediaPart, Message, Text, Tool
from langchain_gemma_jax.dialects.conversation.output_events import Event, StreamParser, TextDelta
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter, RenderedPrompt
from langchain_gemma_jax.dialects.dialect import AS_USUAL, Dialect, RenderOptions
from langchain_gemma_jax.dialects.fenced.fence_parser import OPENER
from langchain_gemma_jax.errors import InputError

PLACE = re.compile(r"(<(?:loc[0-9]{4}|seg[0-9]{3})>)")
"""A token for a place in a picture, or for a part of a shape. These are words of the format, to and from the model."""


@dataclass(frozen=True)
class PaliGemmaDialect(Dialect):
    """The format of PaliGemma 1 and 2: a picture, then a task such as "caption en", in one message."""

    name: ClassVar[str] = "paligemma"
    turns: ClassVar[bool] = False
    stops: ClassVar[tuple[str, ...]] = ("<eos>",)
    call_opener: ClassVar[str] = OPENER
    opener_is_control: ClassVar[bool] = False
    calls: ClassVar[CallShape] = FencedCalls()
    media_names: ClassVar[Mapping[str, str]] = MappingProxyType({"image": "<image>"})

    def render(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), options: RenderOptions = AS_USUAL
    ) -> RenderedPrompt:
        """See ``Dialect.render``. All of it is read in both directions."""
        self.check(messages, options)
        if tools:
            raise InputError("tools: a PaliGemma calls none. It reads a picture and a task, and answers in words.")
        if len(messages) > 1 or messages[0].role != "user":
            roles = ", ".join(message.role for message in messages[:8])
            raise InputError(
                f"messages: expected one message of a user, found {len(messages)}: {roles}. A PaliGemma has no "
                "conversations: it reads a picture and a task in both directions, and nothing can follow its answer. "
                "Ask again with the picture and the next task in one message."
            )
        pictures = [part for part in messages[0].content if isinstance(part, MediaPart)]
        if len(pictures) != 1:
            raise InputError(
                f"messages[0]: expected one picture beside the text, found {len(pictures)}. A PaliGemma is asked about "
                'one picture at a time, with a task such as "caption en" or "answer en What is this?".'
            )
        out = PromptWriter()
        self.show(out, pictures[0])
        out.control("<bos>")
        for text, is_place in _places("".join(part.text for part in messages[0].content if isinstance(part, Text))):
            if is_place:
                out.control(text)
            else:
                out.text(text)
        out.text("\n")
        count = out.cut()
        return RenderedPrompt(tuple(out.pieces), stops=self.stops, both_ways=count)

    def parser(self, *, in_thought: bool = False, tools: Collection[str] = ()) -> _Words:  # noqa: ARG002  there are none
        """See ``Dialect.parser``.

        Raises:
            InputError: ``in_thought`` is True, and these models have no thoughts.
        """
        if in_thought:
            raise InputError(f"in_thought: the format {self.name!r} has no thoughts.")
        return _Words(self.stops)


def _places(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and True with those that are tokens for places."""
    for number, part in enumerate(PLACE.split(text)):
        if part:
            yield part, number % 2 == 1


class _Words(StreamParser):
    """Reads an answer of words and places."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._over = stops, False

    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002  as its base has it
        """See ``StreamParser.feed``."""
        self._over = self._over or (is_control and text in self._stops)
        visible = not self._over and text and (not is_control or PLACE.fullmatch(text))
        return [TextDelta(text)] if visible else []

    def finish(self) -> list[Event]:
        """See ``StreamParser.finish``. Nothing was held back."""
        return []
