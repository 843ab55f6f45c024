"""An answer in plain values: its parts as they come, its end, and all of it. Messages are made of these, once.

They are the same whether the engine is in this process or behind a socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from langchain_core.messages.ai import UsageMetadata

from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.dialects import Event

T = TypeVar("T")


@dataclass(frozen=True)
class AnswerPart:
    """What one piece of the engine's adds to an answer."""

    events: Sequence[Event]
    logprobs: Sequence[Mapping[str, Any]] = ()  # of its tokens, in OpenAI's form; none unless they were asked for
    model: str = ""  # that answers


@dataclass(frozen=True)
class AnswerEnd:
    """How an answer ended, and the events that were still to come."""

    events: Sequence[Event]
    usage: UsageMetadata
    metadata: Mapping[str, Any]  # ``response_metadata`` without log-probabilities


@dataclass(frozen=True)
class WholeAnswer:
    """An answer that was not streamed."""

    answer: Answer
    usage: UsageMetadata
    metadata: Mapping[str, Any]
    logprobs: Sequence[Mapping[str, Any]] = ()


class Shown(Protocol[T]):
    """The form in which an answer is shown while it comes: chunks of a message, events, or JSON."""

    def of(self, part: AnswerPart) -> list[T]:
        """Return what a part of the answer adds."""

    def broken(self) -> list[T]:
        """Return what completes the output after an error ended the answer."""

    def last(self, end: AnswerEnd) -> list[T]:
        """Return the rest of the answer, and how it ended."""
