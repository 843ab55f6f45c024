"""How fast this machine is now, for limits of processor time that were found on a quiet one."""

from __future__ import annotations

from time import thread_time

QUIET = 0.014  # seconds of a processor that the work below takes on such a machine
MOST = 4.0  # times as slow: what takes longer than that is a fault of ours


def slowness() -> float:
    """Return how many times as long as on a quiet machine work takes here: between 1 and 4.

    A core that shares its units with a busy one needs up to twice as much of its own time.
    """
    took = sorted(_timed() for _ in range(3))
    return min(MOST, max(1.0, took[1] / QUIET))


def _timed() -> float:
    began = thread_time()
    found: dict[str, int] = {}
    for number in range(60_000):
        found[str(number % 977)] = number
    return thread_time() - began
