"""Answers as JSON, and back: events, what was asked of their tokens, the end. The receiver makes the messages.

A part's events are lists that begin with a kind: ``{"events": [["text", "Hel"], ["call", "ring"]]}``. The first part
names the model, and the end has ``usage`` and ``metadata``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart, Shown, WholeAnswer
from langchain_gemma_jax.dialects import (
    ArgumentsDelta,
    CallBegin,
    CallEnd,
    Event,
    Invalid,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    merged,
)
from langchain_gemma_jax.errors import ServerError

T = TypeVar("T")

_KINDS: dict[type[Event], str] = {
    TextDelta: "text",
    ThoughtDelta: "thought",
    CallBegin: "call",
    ArgumentsDelta: "arguments",
    CallEnd: "called",
    Invalid: "invalid",
}
_EVENTS: dict[str, type[Event]] = {name: kind for kind, name in _KINDS.items()}


class WireParts:
    """The answer as it is sent while it comes: an object for each part, and one for the end."""

    def __init__(self) -> None:
        self._model = ""  # as it was sent

    def of(self, part: AnswerPart) -> list[dict[str, Any]]:
        """Return the object of a part; none if nothing of it can be shown yet."""
        if not part.events and not part.logprobs:
            return []
        found: dict[str, Any] = {"events": _events_out(part.events)}
        if part.logprobs:
            found["logprobs"] = list(part.logprobs)
        if part.model != self._model:
            found["model"] = self._model = part.model
        return [found]

    def broken(self) -> list[dict[str, Any]]:
        """Return nothing: the receiver of the error has what was written."""
        return []

    def last(self, end: AnswerEnd) -> list[dict[str, Any]]:
        """Return the object of the end."""
        return [{"events": _events_out(end.events), "usage": end.usage, "metadata": dict(end.metadata)}]


def shown_in(item: Mapping[str, Any], shown: Shown[T]) -> list[T]:
    """Return what an object that was sent adds to what is shown.

    Raises:
        ServerError: it is of no form that is known here.
    """
    try:
        events = _events_in(item["events"])
        if "usage" in item:
            return shown.last(AnswerEnd(events, item["usage"], item["metadata"]))
        return shown.of(AnswerPart(events, item.get("logprobs", ()), item.get("model", "")))
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown(item) from error


def whole_out(answered: WholeAnswer) -> dict[str, Any]:
    """Return a whole answer in the form in which it is sent."""
    answer = answered.answer
    fields: dict[str, Any] = {
        "text": answer.text,
        "thinking": answer.thinking,
        "calls": [[call.name, call.arguments] for call in answer.calls],
        "invalid": [[each.raw, each.error, each.name, each.unfinished] for each in answer.invalid],
        "logprobs": list(answered.logprobs),
    }
    return {name: value for name, value in fields.items() if value} | {
        "usage": answered.usage,
        "metadata": answered.metadata,
    }


def whole_in(item: Mapping[str, Any]) -> WholeAnswer:
    """Return the whole answer that was sent.

    Raises:
        ServerError: it is of no form that is known here.
    """
    try:
        answer = Answer(
            item.get("text", ""),
            item.get("thinking", ""),
            tuple(ToolCall(name, arguments) for name, arguments in item.get("calls", ())),
            tuple(Invalid(*each) for each in item.get("invalid", ())),
        )
        return WholeAnswer(answer, item["usage"], item["metadata"], item.get("logprobs", ()))
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown(item) from error


def _events_out(events: Sequence[Event]) -> list[list[Any]]:
    return [[_KINDS[type(event)], *vars(event).values()] for event in merged(events)]


def _events_in(events: Sequence[Sequence[Any]]) -> list[Event]:
    return [_EVENTS[kind](*fields) for kind, *fields in events]


def _unknown(item: Mapping[str, Any]) -> ServerError:
    return ServerError(
        f"The server sent an answer of a form that is not known here: {dict(item)!r:.200}. Are client and server of "
        "one version? Install the same one of langchain-gemma-jax for both."
    )
