"""The engine that answers a chat model's calls: that of this process, or one in another, behind the same protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Protocol, TypeVar

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.answering.answer_parts import Shown, WholeAnswer
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.live_answer import astream, awhole_answer, stream, whole_answer
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

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        """Return the number of tokens of a conversation as a prompt."""
        ...

    def token_ids(self, text: str, options: Options) -> list[int]:
        """Return a text's tokens."""
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

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        return count_tokens(messages, options)

    def token_ids(self, text: str, options: Options) -> list[int]:
        return token_ids(text, options)


THIS_PROCESS = ThisProcess()
