"""What a model said, put together from events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_gemma_jax.dialects import (
    CallBegin,
    CallEnd,
    Event,
    Invalid,
    Message,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    merged,
)


@dataclass(frozen=True)
class Answer:
    """Words, thoughts and calls."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    invalid: tuple[Invalid, ...]

    @classmethod
    def of(cls, events: Iterable[Event]) -> Answer:
        """Return the answer that the events of an output make."""
        texts, thoughts, name = [], [], ""
        calls: list[ToolCall] = []
        invalid: list[Invalid] = []
        for event in merged(events):
            match event:
                case TextDelta(text):
                    texts.append(text)
                case ThoughtDelta(text):
                    thoughts.append(text)
                case CallBegin(name):
                    pass
                case CallEnd(arguments):
                    calls.append(ToolCall(name, arguments))
                case Invalid():
                    invalid.append(event)
        return cls("".join(texts), "".join(thoughts), tuple(calls), tuple(invalid))

    @property
    def message(self) -> Message:
        """The answer as a message of a conversation, in which what is no call is words: see ``conversation``."""
        said = "".join([self.text, *(each.raw for each in self.invalid)])
        return Message.assistant(said, thinking=self.thinking, calls=self.calls)
