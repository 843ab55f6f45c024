"""Limits of what work may take that hold on any machine, however slow it is and whatever else it does.

Seconds are of this thread's processor, so waiting and pauses do not count. Work is repeated while it is above its
limit: what is at fault takes as long each time, and what others do to a shared core passes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import thread_time

QUIET = 0.014  # seconds that ``_known_work`` takes on a quiet machine of the kind on which limits were found
TRIES = 6


def growth(small: Callable[[], object], large: Callable[[], object], limit: float) -> float:
    """Return how many times as long ``large`` takes as ``small``, at its best; it is tried until that is ``limit``.

    Where the large one has eight times as much to do, a linear cost gives 8 and a quadratic one 64.
    """
    return _least(lambda: seconds(large), lambda: seconds(small), limit)


def effort(work: Callable[[], object], limit: float) -> float:
    """Return the seconds that work would take on a quiet machine, at its best; it is tried until that is ``limit``.

    It is compared with work that is known. Where it may not be repeated as it is, it makes something new each time.
    """
    return effort_told(lambda: seconds(work), limit)


def effort_told(measured: Callable[[], float], limit: float) -> float:
    """Return the seconds that work would take on a quiet machine, if it says itself how many seconds count."""
    return _least(measured, lambda: seconds(_known_work), limit / QUIET) * QUIET


def _least(measured: Callable[[], float], yardstick: Callable[[], float], limit: float) -> float:
    """The least of the one in the least of the other, of as many tries as it takes to be below the limit."""
    took, by = list[float](), list[float]()
    while not took or (min(took) >= limit * min(by) and len(took) < TRIES):
        by += [yardstick() for _ in range(3)]
        took.append(measured())
    return min(took) / min(by)


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of this thread's processor that work takes now."""
    collecting = gc.isenabled()
    gc.disable()  # a collection is of what others left behind
    try:
        began = thread_time()
        work()
        return max(thread_time() - began, 1e-7)
    finally:
        if collecting:
            gc.enable()


def _known_work() -> None:
    found: dict[str, int] = {}
    for number in range(60_000):
        found[str(number % 977)] = number
