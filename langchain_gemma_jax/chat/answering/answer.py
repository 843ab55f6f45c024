"""A model's answer, put together from events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_gemma_jax.dialects import CallBegin, CallEnd, Event, Invalid, Message, TextDelta, ThoughtDelta, ToolCall


@dataclass(frozen=True)
class Answer:
    """A model's answer: text, thoughts and calls."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    invalid: tuple[Invalid, ...]

    @property
    def message(self) -> Message:
        """The answer as a message of a conversation, in which invalid calls are text: see ``conversation``."""
        words = "".join([self.text, *(each.raw for each in self.invalid)])
        return Message.assistant(words, thinking=self.thinking, calls=self.calls)


class AnswerBuilder:
    """Puts an answer together while its events come. Each event is looked at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._invalid: list[Invalid] = []
        self._name = ""  # of the tool whose call is being written

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events of the output."""
        for event in events:
            match event:
                case TextDelta(text):
                    self._texts.append(text)
                case ThoughtDelta(text):
                    self._thoughts.append(text)
                case CallBegin(name):
                    self._name = name
                case CallEnd(arguments):
                    self._calls.append(ToolCall(self._name, arguments))
                case Invalid():
                    self._invalid.append(event)

    def answer(self) -> Answer:
        """Return the answer so far."""
        return Answer("".join(self._texts), "".join(self._thoughts), tuple(self._calls), tuple(self._invalid))
