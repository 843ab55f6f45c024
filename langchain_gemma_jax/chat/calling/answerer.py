"""The engine that answers a chat model's calls: that of this process, or one in another, behind the same protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from langchain_gemma_jax.chat.answering.messages_out import Chunks
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import Call, ended
from langchain_gemma_jax.chat.calling.live_answer import as_events, astream, stream
from langchain_gemma_jax.chat.calling.starting import start
from langchain_gemma_jax.chat.calling.token_counting import count_tokens, token_ids
from langchain_gemma_jax.chat.calling.whole_answer import awhole_answer
from langchain_gemma_jax.engine.requests.clock import Clock


class Answerer(Protocol):
    """An engine, wherever it runs. The errors are those of ``start``, and of the engine."""

    def answer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> AIMessage:
        """Return a whole answer."""
        ...

    async def aanswer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> AIMessage:
        """Return a whole answer, while the event loop goes on."""
        ...

    def chunks(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, *, as_blocks: bool
    ) -> Iterator[AIMessageChunk]:
        """Yield an answer in chunks, while it comes."""
        ...

    def achunks(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, *, as_blocks: bool
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Yield an answer in chunks, while it comes and the event loop goes on."""
        ...

    def events(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, message_id: str
    ) -> Iterator[dict[str, Any]]:
        """Yield an answer as events of LangChain's protocol, while it comes."""
        ...

    def aevents(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, message_id: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield an answer as events, while it comes and the event loop goes on."""
        ...

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        """Return the number of tokens of a conversation as a prompt."""
        ...

    def token_ids(self, text: str, options: Options) -> list[int]:
        """Return a text's tokens."""
        ...


class ThisProcess:
    """The engine of this process."""

    def answer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> AIMessage:
        asked: Options | None = options
        while asked is not None:
            call = start(messages, asked, clock)
            try:
                done = call.generation.result()
            finally:
                call.generation.cancel()  # where the waiting is interrupted
            found, asked = ended(call, done)
        return found

    async def aanswer(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> AIMessage:
        return await awhole_answer(messages, options, clock)

    def chunks(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, *, as_blocks: bool
    ) -> Iterator[AIMessageChunk]:
        return stream(messages, options, clock, partial(_as_chunks, as_blocks))

    def achunks(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, *, as_blocks: bool
    ) -> AsyncGenerator[AIMessageChunk, None]:
        return astream(messages, options, clock, partial(_as_chunks, as_blocks))

    def events(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, message_id: str
    ) -> Iterator[dict[str, Any]]:
        return stream(messages, options, clock, partial(as_events, message_id))

    def aevents(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, message_id: str
    ) -> AsyncGenerator[dict[str, Any], None]:
        return astream(messages, options, clock, partial(as_events, message_id))

    def count_tokens(self, messages: Sequence[BaseMessage], options: Options) -> int:
        return count_tokens(messages, options)

    def token_ids(self, text: str, options: Options) -> list[int]:
        return token_ids(text, options)


THIS_PROCESS = ThisProcess()


def _as_chunks(as_blocks: bool, call: Call) -> Chunks:  # noqa: FBT001  bound before the call is known
    return Chunks(call.spells_logprobs_with, as_blocks=as_blocks)
