"""Events: a parser's reading of a model's output, while it comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.grammar.json_value import Json


@dataclass(frozen=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True)
class ThoughtDelta:
    """More of the model's thought before its answer."""

    text: str


@dataclass(frozen=True)
class CallBegin:
    """The begin of a tool's call. Its arguments follow, then ``CallEnd`` or ``Invalid``."""

    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """More of a call's arguments, as JSON. Together, up to ``CallEnd``, they are one JSON object."""

    json: str


@dataclass(frozen=True)
class CallEnd:
    """The end of a call that is complete, with its arguments."""

    arguments: Mapping[str, Json]


@dataclass(frozen=True)
class Invalid:
    """A call that cannot be parsed: its text, the error, and the tool's name if that could be read.

    It ends a call that had begun. If there was no ``CallBegin`` before it, not even the name could be read.
    ``unfinished``: the output ended in the middle of the call.
    """

    raw: str
    error: str
    name: str | None = None
    unfinished: bool = False


Event: TypeAlias = TextDelta | ThoughtDelta | CallBegin | ArgumentsDelta | CallEnd | Invalid


class StreamParser(ABC):
    """Reads one output of a model. It never raises, and takes time in proportion to the text.

    The events do not depend on how the text is split, once adjacent deltas are joined: see ``merged``.
    """

    @abstractmethod
    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002  the second half of a pair
        """Take more of the output: text, or one control token by its string. Text is never a control token."""

    @abstractmethod
    def finish(self) -> list[Event]:
        """End the output, and return the events of the text that was held back."""


def merged(events: Iterable[Event]) -> list[Event]:
    """Return the events with adjacent deltas joined."""
    given = list(events)
    if len(given) == 1:  # as most pieces of an answer are
        return given
    joined: list[Event] = []
    parts: list[str] = []
    kind: type[TextDelta | ThoughtDelta | ArgumentsDelta] | None = None
    for event in given:
        if kind is not None and not isinstance(event, kind):
            joined.append(kind("".join(parts)))
            parts, kind = [], None
        match event:
            case TextDelta(text) | ThoughtDelta(text) | ArgumentsDelta(text):
                parts.append(text)
                kind = type(event)
            case _:
                joined.append(event)
    if kind is not None:
        joined.append(kind("".join(parts)))
    return joined
