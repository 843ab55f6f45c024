"""Answers in the form of Ollama's API: whole, or as lines, each with what is new of it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages.ai import UsageMetadata

from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart, WholeAnswer
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer
from langchain_gemma_jax.dialects import CallBegin, CallEnd, Event, Invalid, TextDelta, ThoughtDelta, ToolCall, merged
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.server.apis.openai_parts import new_id
from langchain_gemma_jax.server.ollama.forms import line, nanoseconds, time_text
from langchain_gemma_jax.server.ollama.notes import Notes


@dataclass(frozen=True)
class AnswerContent:
    """A part of an answer, or all of it."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[ToolCall] = ()
    first_call: int = 0  # the number of the calls before these
    logprobs: Sequence[Mapping[str, Any]] = ()


class LineForm(Protocol):
    """The form in which a path's answers hold its content."""

    def __call__(self, content: AnswerContent) -> dict[str, Any]:
        """Return the fields of an answer, or of a line of it."""


def as_message(content: AnswerContent) -> dict[str, Any]:
    """Return what was said as ``/api/chat`` has it."""
    message: dict[str, Any] = {"role": "assistant", "content": content.text}
    if content.thinking:
        message["thinking"] = content.thinking
    if content.calls:
        message["tool_calls"] = [
            {"id": new_id("call_"), "function": {"index": n, "name": call.name, "arguments": dict(call.arguments)}}
            for n, call in enumerate(content.calls, content.first_call)
        ]
    return {"message": message} | _logprobs(content)


def as_response(content: AnswerContent) -> dict[str, Any]:
    """Return what was said as ``/api/generate`` has it."""
    thinking = {"thinking": content.thinking} if content.thinking else {}
    return {"response": content.text} | thinking | _logprobs(content)


def _logprobs(content: AnswerContent) -> dict[str, Any]:
    return {"logprobs": list(content.logprobs)} if content.logprobs else {}


@dataclass(frozen=True)
class Answering:
    """One call's answer: the model's name as its caller wrote it, the form, the notes, and when the call began."""

    model: str
    form: LineForm
    notes: Notes
    clock: Clock

    def line(self, content: AnswerContent) -> bytes:
        """Return a line with a part of the answer."""
        return line(self.head() | self.form(content) | {"done": False})

    def head(self) -> dict[str, Any]:
        """Return the fields that each answer and each line begin with."""
        return {"model": self.model, "created_at": time_text()}

    def end(self, content: AnswerContent, usage: UsageMetadata, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return a whole answer, or the fields of its last line: how it ended, and what it cost."""
        times = metadata["timings"]
        spent = EngineTimes(times["queue_s"], times["prefill_s"], times["decode_s"], times["total_s"])
        reason = "length" if metadata["finish_reason"] == "length" else "stop"
        counts = TokenCounts(usage["input_tokens"], usage["input_token_details"]["cache_read"], usage["output_tokens"])
        return self.ended(content, reason, spent, counts)

    def ended(self, content: AnswerContent, reason: str, spent: EngineTimes, counts: TokenCounts) -> dict[str, Any]:
        """Return a whole answer, or the fields of its last line."""
        total = time.monotonic() - self.clock.began
        return (
            self.head()
            | self.form(content)
            | {
                "done": True,
                "done_reason": reason,
                "total_duration": nanoseconds(total),
                "load_duration": nanoseconds(total - spent.total + spent.queued),
                "prompt_eval_count": counts.read,
                "prompt_cached_count": counts.cached,
                "prompt_eval_duration": nanoseconds(spent.reading),
                "eval_count": counts.written,
                "eval_duration": nanoseconds(spent.writing),
            }
            | self.notes.field
        )

    def loaded(self, reason: str) -> dict[str, Any]:
        """Return the answer to a request that says nothing: its model was loaded, or left."""
        content = self.form(AnswerContent())
        return self.head() | content | {"done": True, "done_reason": reason} | self.notes.field


@dataclass(frozen=True)
class EngineTimes:
    """The seconds that a request spent in the engine."""

    queued: float
    reading: float
    writing: float
    total: float


@dataclass(frozen=True)
class TokenCounts:
    """An answer's tokens: those of the prompt, those of them that were known already, and those that were written."""

    read: int
    cached: int
    written: int


class Lines:
    """An answer as lines while it comes. A call of a tool is sent when it is whole; a broken one is sent as text."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._name = ""  # of the call that is being written
        self._calls = 0
        self._logprobs: list[Mapping[str, Any]] = []

    def of(self, part: AnswerPart) -> list[bytes]:
        """Return the line of a part, or nothing where it shows nothing yet."""
        self._logprobs += part.logprobs
        content = self._content(part.events)
        return [] if content is None else [self._answering.line(content)]

    def last(self, end: AnswerEnd) -> list[bytes]:
        """Return the line of what is left, if there is any, and the last line."""
        content = self._content(end.events)
        rest = [] if content is None else [self._answering.line(content)]
        left = AnswerContent(logprobs=tuple(self._logprobs))
        return [*rest, line(self._answering.end(left, end.usage, end.metadata))]

    def broken(self) -> list[bytes]:
        """Return nothing: an unfinished call was not sent."""
        return []

    def _content(self, events: Iterable[Event]) -> AnswerContent | None:
        text, thinking, calls = "", "", list[ToolCall]()
        for event in merged(events):
            match event:
                case TextDelta(more):
                    text += more
                case ThoughtDelta(more):
                    thinking += more
                case CallBegin(name):
                    self._name = name
                case CallEnd(arguments):
                    calls.append(ToolCall(self._name, arguments))
                case Invalid(raw):
                    text += raw
                case _:  # arguments, which the end of their call has too
                    pass
        if not (text or thinking or calls):
            return None
        content = AnswerContent(text, thinking, calls, self._calls, tuple(self._logprobs))
        self._calls += len(calls)
        self._logprobs.clear()
        return content


async def whole(begun: CallStart, answering: Answering) -> dict[str, Any]:
    """Return a whole answer."""
    answering.notes.listen()
    found: WholeAnswer = await awhole_answer(begun)
    answer = found.answer
    text = answer.text + "".join(each.raw for each in answer.invalid)
    content = AnswerContent(text, answer.thinking, answer.calls, 0, found.logprobs)
    return answering.end(content, found.usage, found.metadata)


async def streamed(begun: CallStart, answering: Answering) -> AsyncGenerator[bytes, None]:
    """Yield an answer's lines."""
    answering.notes.listen()
    async with aclosing(astream(begun, Lines(answering))) as lines:
        async for each in lines:
            yield each
