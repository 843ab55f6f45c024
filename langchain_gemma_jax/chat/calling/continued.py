"""Texts that a model goes on with, in this process: several whole, or one as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import cast

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.raw_text import begin_text
from langchain_gemma_jax.chat.calling.starting import abegin, begin
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.request import Completion, Piece


@dataclass(frozen=True)
class TextEnd:
    """The end of a text's continuation, and its cost."""

    finish_reason: str
    stop: str | None  # the stop string that ended it, if one did
    prompt_tokens: int
    generated_tokens: int

    @classmethod
    def of(cls, done: Completion) -> TextEnd:
        """Return the end of a completion."""
        stop = done.stop if isinstance(done.stop, str) else None
        return cls(str(done.finish_reason), stop, done.prompt_tokens, done.generated_tokens)


@dataclass(frozen=True)
class Continuation:
    """All that follows a text."""

    text: str
    end: TextEnd

    @classmethod
    def of(cls, done: Completion) -> Continuation:
        """Return what a completion says."""
        return cls(done.text, TextEnd.of(done))


def continued(texts: Sequence[str], suffix: str | None, options: Options, clock: Clock) -> list[Continuation]:
    """Return what follows each text. They share the engine's steps.

    Raises:
        InputError: the model cannot fill in before a ``suffix``. Others as ``begin_text`` has them.
    """
    running = [begin(partial(begin_text, each, suffix, options, clock), clock) for each in texts]
    try:
        return [Continuation.of(each.result()) for each in running]
    finally:
        for each in running:
            each.cancel()  # if the waiting is interrupted


async def acontinued(texts: Sequence[str], suffix: str | None, options: Options, clock: Clock) -> list[Continuation]:
    """Return what follows each text, as ``continued`` does, while the event loop goes on."""
    running: list[Generation] = []
    try:
        for text in texts:  # one by one, so that those that have begun are cancelled if another one fails
            one = await abegin(partial(begin_text, text, suffix, options, clock), clock)
            running.append(one)
        return [Continuation.of(await each) for each in running]
    finally:
        for each in running:
            each.cancel()


def continuing(text: str, suffix: str | None, options: Options, clock: Clock) -> Iterator[str | TextEnd]:
    """Yield what follows a text as it comes, and then how it ended."""
    generation = begin(partial(begin_text, text, suffix, options, clock), clock)
    for piece in generation:
        yield piece.text
    yield TextEnd.of(generation.result())


async def acontinuing(
    text: str, suffix: str | None, options: Options, clock: Clock
) -> AsyncGenerator[str | TextEnd, None]:
    """Yield what follows a text, as ``continuing`` does, while the event loop goes on."""
    generation = await abegin(partial(begin_text, text, suffix, options, clock), clock)
    async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(generation))) as pieces:
        async for piece in pieces:
            yield piece.text
    yield TextEnd.of(await generation)
