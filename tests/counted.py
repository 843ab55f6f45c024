"""The cost of work, counted rather than timed: the same on every machine, whatever else it does."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType

WORD = 64  # bytes that a processor copies while Python runs a line, roughly


def lines(work: Callable[[], object]) -> int:
    """Return how many lines of Python this thread runs."""
    return _traced(work)[0]


def cost(work: Callable[[], object]) -> float:
    """Return the lines that this thread runs, and what they allocate: copying a large text is no small thing."""
    found, copied = _traced(work, copies=True)
    return found + copied / WORD


def copied(work: Callable[[], object]) -> int:
    """Return the bytes that this thread allocates, line by line: what is copied twice counts twice."""
    return _traced(work, copies=True)[1]


def growth(small: Callable[[], object], large: Callable[[], object]) -> float:
    """Return how many times as much ``large`` costs as ``small``.

    Where the large one has eight times as much to do, a linear cost gives 8 and a quadratic one 64.
    """
    return cost(large) / cost(small)


def _traced(work: Callable[[], object], *, copies: bool = False) -> tuple[int, int]:
    found = copied = held = 0

    def look(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal found, copied, held
        if event == "line":
            found += 1
            if copies:
                now, most = tracemalloc.get_traced_memory()
                copied += max(0, most - held)
                tracemalloc.reset_peak()
                held = now
        return look

    collecting, before = gc.isenabled(), sys.gettrace()
    gc.disable()  # a collection runs finalizers of what others left behind
    if copies:
        tracemalloc.start()
    try:
        sys.settrace(look)  # type: ignore[arg-type]
        work()
    finally:
        sys.settrace(before)
        if copies:
            tracemalloc.stop()
        if collecting:
            gc.enable()
    return found, copied
