"""Ranges of characters as ranges of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from langchain_gemma_jax.engine.grammar.characters import Characters

Bytes: TypeAlias = tuple[tuple[int, int], ...]
"""One range for each byte of a character."""

_LENGTHS = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)  # the last character of one, two, three and four bytes


@lru_cache(maxsize=1024)
def encoded(characters: Characters) -> tuple[Bytes, ...]:
    """What UTF-8 makes of a set: a character is in it if one of these fits its bytes, range by range."""
    return tuple(found for low, high in characters for found in _range(low, high))


def _range(low: int, high: int) -> Iterator[Bytes]:
    start = 0
    for end in _LENGTHS:
        if low <= end and high >= start:
            yield from _same_length(max(low, start), min(high, end))
        start = end + 1


def _same_length(low: int, high: int) -> Iterator[Bytes]:
    """For characters of as many bytes: split until each byte's range does not depend on the others."""
    first, last = chr(low).encode(), chr(high).encode()
    for index in range(1, len(first)):
        span = (1 << 6 * (len(first) - index)) - 1  # what the bytes from here on can count
        if low & ~span == high & ~span:
            continue
        if low & span:
            yield from _same_length(low, low | span)
            yield from _same_length((low | span) + 1, high)
            return
        if high & span != span:
            yield from _same_length(low, (high & ~span) - 1)
            yield from _same_length(high & ~span, high)
            return
    yield tuple(zip(first, last, strict=True))
