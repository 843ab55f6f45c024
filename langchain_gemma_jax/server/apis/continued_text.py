"""A text that a model goes on with as it is, or fills in before a suffix: whole, or in pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import cast

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.raw_text import begin_text
from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.request import Completion, Piece


class ContinuedText:
    """One text, and what the model writes behind it. Nothing begins before it is awaited."""

    def __init__(self, text: str, suffix: str | None, asked: Options) -> None:
        self._clock = Clock(asked.timeout)
        self._begin = partial(begin_text, text, suffix, asked, self._clock)

    async def whole(self) -> Completion:
        """Return all of what follows."""
        generation = await self._begun()
        try:
            return await generation
        finally:
            generation.cancel()  # where the waiting is interrupted

    async def pieces(self) -> AsyncGenerator[str | Completion, None]:
        """Yield the texts that follow, as they come, and then how it ended."""
        generation = await self._begun()
        async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(generation))) as pieces:
            async for piece in pieces:
                if piece.text:
                    yield piece.text
        yield await generation

    async def _begun(self) -> Generation:
        return await abegin(self._begin, self._clock)
