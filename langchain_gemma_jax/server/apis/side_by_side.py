"""Several answers at once: whole ones together, or the pieces of all as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from langchain_gemma_jax.errors import InputError

T = TypeVar("T")

MOST = 128  # answers to one request


def answer_count(value: object, where: str = "n") -> int:
    """Return how many answers a request wants to a prompt: one where it does not say.

    Raises:
        InputError: it is no number that is possible.
    """
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise InputError(f"{where}: expected a whole number from 1 to {MOST}, found {value!r:.60}.")
    return value


def seed_of(seed: object, number: int) -> object:
    """Return the seed of one of several answers: with one for all, all would be the same."""
    return seed + number if number and isinstance(seed, int) and not isinstance(seed, bool) else seed


async def all_of(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all of them return. If one fails, or the waiting is interrupted, the others end."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _end(tasks)


async def as_they_come(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """Yield what any of them yields, with its number. If one fails, or the caller leaves, the others end."""
    if len(sources) == 1:  # without a hop through a queue
        async with aclosing(sources[0]) as only:
            async for each in only:
                yield 0, each
        return
    came: asyncio.Queue[tuple[int, T] | Exception | None] = asyncio.Queue(len(sources))

    async def drain(number: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(source):
                async for each in source:
                    await came.put((number, each))
        except Exception as error:  # noqa: BLE001  it is raised where they are listened to
            await came.put(error)
        else:
            await came.put(None)

    tasks = [asyncio.ensure_future(drain(number, source)) for number, source in enumerate(sources)]
    left = len(tasks)
    try:
        while left:
            found = await came.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                left -= 1
            else:
                yield found
    finally:
        await _end(tasks)


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
