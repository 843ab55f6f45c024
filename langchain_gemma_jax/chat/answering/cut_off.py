"""Answers that were cut off: the cause, the remedy, and the error for one that should have been an object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage

from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.errors import GemmaJaxError

KEY = "cut_off"  # in response_metadata: the cause, and what to do


class CutOffError(GemmaJaxError, OutputParserException):
    """A structured answer was cut off before it was complete. ``llm_output`` is the text so far.

    ``reason`` says what cut it off, and what to do.
    """

    anchor = "cutofferror"

    def __init__(self, reason: str, llm_output: str | None = None) -> None:
        self.reason = reason
        super().__init__(f"The answer is no whole object, because it was cut off: {reason}", llm_output=llm_output)

    def __reduce__(self) -> tuple[type[CutOffError], tuple[str, str | None]]:
        return type(self), (self.reason, self.llm_output)


@dataclass(frozen=True)
class AnswerLimits:
    """The limits on an answer's tokens: the caller's ``max_tokens``, and the room in the context."""

    max_tokens: int | None
    room: int  # of the context, behind the prompt

    @property
    def most(self) -> int:
        """The most tokens that the answer may have: ``max_tokens``, or the room if that is less."""
        return self.room if self.max_tokens is None else min(self.max_tokens, self.room)

    def reason(self, done: Completion) -> str | None:
        """Return what cut an answer off, and what to do about it. None: it ended by itself."""
        if isinstance(done.stop, str):
            return f"the stop string {done.stop!r} ended it. Choose one that no value has in it, or leave it out."
        if done.complete:
            return None
        if done.generated_tokens < self.most:
            return "what it is held to allowed no token that could be drawn. Ask again, or allow more of it."
        if self.max_tokens == self.most:
            return f"max_tokens={self.max_tokens} were used up. Allow more, or ask for less."
        return (
            f"the context was full behind {done.generated_tokens} tokens. Shorten the conversation, or allow a longer "
            "context if the model has one: max_context=..., configure(max_context=...)."
        )


def whole_only(messages: Iterator[AIMessage]) -> Iterator[AIMessage]:
    """Pass an answer on, whole or in chunks.

    Raises:
        CutOffError: the answer was cut off, so no object can be made of it.
    """
    texts: list[str] = []
    for message in messages:
        _check(message, texts)
        yield message


async def awhole_only(messages: AsyncIterator[AIMessage]) -> AsyncIterator[AIMessage]:
    """Pass an answer on, whole or in chunks, as ``whole_only`` does, asynchronously."""
    texts: list[str] = []
    async for message in messages:
        _check(message, texts)
        yield message


def _check(message: AIMessage, texts: list[str]) -> None:
    texts.append(message.text)
    texts += [call["args"] or "" for call in getattr(message, "tool_call_chunks", message.invalid_tool_calls)]
    if (reason := message.response_metadata.get(KEY)) is not None:
        raise CutOffError(str(reason), "".join(texts))
