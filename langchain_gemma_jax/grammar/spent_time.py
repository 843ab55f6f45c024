"""The processor time that a thread has spent on its own work, without what Python's garbage collector took of it.

The collector runs in whichever thread makes the object that sets it off, and in a process with many objects it takes
half a second. A limit of less than a tenth of a second must not count that.
"""

from __future__ import annotations

import gc
import threading
from time import perf_counter, thread_time
from typing import Any


class _Collector(threading.local):
    """How much of one thread's time garbage collections have taken."""

    began = 0.0
    seconds = 0.0


_collector = _Collector()


def _note(phase: str, _: dict[str, Any]) -> None:
    if phase == "start":
        _collector.began = thread_time()
    else:
        _collector.seconds += thread_time() - _collector.began


gc.callbacks.append(_note)


def spent() -> float:
    """Return the seconds that this thread has spent, since some time in the past."""
    return thread_time() - _collector.seconds


class Allowance:
    """Seconds of a processor that a thread may spend, from now on.

    To ask the system for a thread's time takes a third of a millisecond on some machines. Nothing spends more than the
    seconds that have passed, so the clock on the wall says when it is worth to ask again.
    """

    def __init__(self, seconds: float) -> None:
        self._until = spent() + seconds
        self._ask_at = perf_counter() + seconds

    def is_spent(self) -> bool:
        """Return True if the thread has used up its allowance."""
        now = perf_counter()
        if now < self._ask_at:
            return False
        left = self._until - spent()
        self._ask_at = now + left
        return left < 0
