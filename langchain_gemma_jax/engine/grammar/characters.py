"""Sets of characters, as ranges of code points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Characters: TypeAlias = tuple[tuple[int, int], ...]
"""Ranges, both ends included, rising and apart from each other. Halves of surrogate pairs are in none."""

EVERY: Characters = ((0, 0xD7FF), (0xE000, 0x10FFFF))


def union(ranges: Iterable[tuple[int, int]]) -> Characters:
    """The set of what is in any of these ranges."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return tuple(joined)


def common(first: Characters, second: Characters) -> Characters:
    """What is in both."""
    found: list[tuple[int, int]] = []
    left, right = 0, 0
    while left < len(first) and right < len(second):
        low, high = max(first[left][0], second[right][0]), min(first[left][1], second[right][1])
        if low <= high:
            found.append((low, high))
        if first[left][1] < second[right][1]:
            left += 1
        else:
            right += 1
    return tuple(found)


def without(first: Characters, second: Characters) -> Characters:
    """What is in the first and not in the second."""
    rest: list[tuple[int, int]] = []
    start = 0
    for low, high in second:
        if low > start:
            rest.append((start, low - 1))
        start = high + 1
    rest.append((start, 0x10FFFF))
    return common(first, tuple(rest))


def of(text: str) -> Characters:
    """The characters of a text."""
    return union((ord(character), ord(character)) for character in text)
