"""The engine that answers a model's calls: that of this process, or one in another, behind the same protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.answering.answer_parts import Shown, WholeAnswer
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.continued import (
    Continuation,
    TextEnd,
    acontinued,
    acontinuing,
    continued,
    continuing,
)
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer, stream, whole_answer
from langchain_gemma_jax.chat.calling.reading_ahead import aread_ahead
from langchain_gemma_jax.chat.calling.token_counting import count_tokens, token_ids
from langchain_gemma_jax.engine.requests.clock import Clock

T = TypeVar("T")


class Answerer(Protocol):
    """An engine, wherever it runs. The errors are those of ``start``, and of the engine."""

    def answer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        """Return a whole answer."""
        ...

    async def aanswer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        """Return a whole answer, while the event loop goes on."""
        ...

    def stream(self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]) -> Iterator[T]:
        """Yield an answer in the caller's form, while it comes."""
        ...

    def astream(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]
    ) -> AsyncGenerator[T, None]:
        """Yield an answer in the caller's form, while it comes and the event loop goes on."""
        ...

    async def aread_ahead(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> bool:
        """Read a prompt while there is nothing else to do. False: it was given up."""
        ...

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        """Return the number of tokens of a conversation as a prompt."""
        ...

    def token_ids(self, text: str, options: Options) -> list[int]:
        """Return a text's tokens."""
        ...

    def continued(self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock) -> list[Continuation]:
        """Return what follows each text."""
        ...

    async def acontinued(
        self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock
    ) -> list[Continuation]:
        """Return what follows each text, while the event loop goes on."""
        ...

    def continuing(self, text: str, suffix: str | None, options: Options, clock: Clock) -> Iterator[str | TextEnd]:
        """Yield what follows a text, while it comes."""
        ...

    def acontinuing(
        self, text: str, suffix: str | None, options: Options, clock: Clock
    ) -> AsyncGenerator[str | TextEnd, None]:
        """Yield what follows a text, while it comes and the event loop goes on."""
        ...


class ThisProcess:
    """The engine of this process."""

    def answer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        return whole_answer(CallStart(messages, options, clock))

    async def aanswer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> WholeAnswer:
        return await awhole_answer(CallStart(messages, options, clock))

    def stream(self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]) -> Iterator[T]:
        return stream(CallStart(messages, options, clock), shown)

    def astream(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, shown: Shown[T]
    ) -> AsyncGenerator[T, None]:
        return astream(CallStart(messages, options, clock), shown)

    async def aread_ahead(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> bool:
        return await aread_ahead(CallStart(messages, options.reading_ahead, clock))

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        return count_tokens(messages, options)

    def token_ids(self, text: str, options: Options) -> list[int]:
        return token_ids(text, options)

    def continued(self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock) -> list[Continuation]:
        return continued(texts, suffix, options, clock)

    async def acontinued(
        self, texts: Sequence[str], suffix: str | None, options: Options, clock: Clock
    ) -> list[Continuation]:
        return await acontinued(texts, suffix, options, clock)

    def continuing(self, text: str, suffix: str | None, options: Options, clock: Clock) -> Iterator[str | TextEnd]:
        return continuing(text, suffix, options, clock)

    def acontinuing(
        self, text: str, suffix: str | None, options: Options, clock: Clock
    ) -> AsyncGenerator[str | TextEnd, None]:
        return acontinuing(text, suffix, options, clock)


THIS_PROCESS = ThisProcess()
