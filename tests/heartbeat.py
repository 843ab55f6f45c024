"""An event loop is free while something goes on if its tasks get their turn, and its thread has little to do.

What counts is the processor time of the loop's own thread between two turns of a task, whatever else the machine does,
and only a twentieth of the time that went by: a loop that waits for somebody is late too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

FREE = 0.05  # seconds that an event loop may be busy at a time, with a second gone by


async def least_lag(work: Callable[[], Awaitable[object]], tries: int = 5) -> float:
    """Return the lag of the best of some tries: what blocks the loop does so each time, other work does not."""
    found = [await _lag(work())]
    while found[-1] >= FREE and len(found) < tries:
        found.append(await _lag(work()))
    return min(found)


async def _lag(work: Awaitable[object]) -> float:
    """The 99th percentile of how long the loop was busy between two turns."""
    lags: list[float] = []

    async def beat() -> None:
        while True:
            busy, gone = time.thread_time(), time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append(max(time.thread_time() - busy, (time.perf_counter() - gone) / 20))

    beating = asyncio.create_task(beat())
    try:
        await work
    finally:
        beating.cancel()
    assert len(lags) > 10, "the task got hardly a turn"
    return sorted(lags)[int(len(lags) * 0.99)]
