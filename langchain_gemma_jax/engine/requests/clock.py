"""How long one call may take, from when its caller called, and what that time went into."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langchain_gemma_jax.engine.base.checks import checked_timeout
from langchain_gemma_jax.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

T = TypeVar("T")

Steps: TypeAlias = "Generator[Future[Any], None, T]"
"""Work in steps: each gives what has to be done, elsewhere, before the next one. So a thread and an event loop can
wait for the same work, each in its own way: see ``wait_for`` and ``await_for``."""

_WORTH_TELLING = 0.05  # seconds


class ForRoom(float):
    """Seconds that limit the waiting for room in memory, and nothing else of what a call does."""


class Parts:
    """What time goes into, one thing after the other."""

    def __init__(self) -> None:
        self._began: list[tuple[float, str, Parts | None]] = []

    def now(self, what: str, inside: Parts | None = None) -> None:
        """Count the time from here on as this part; ``inside`` divides it further."""
        self._began.append((time.monotonic(), what, inside))

    @property
    def last(self) -> str:
        """The part that time goes into just now."""
        return self._began[-1][1] if self._began else ""

    def told(self, since: float, now: float) -> str:
        """The parts of a time, each with its seconds. Empty: nothing is known of it."""
        ends = [began for began, _, _ in self._began[1:]] + [now]
        found: dict[str, tuple[float, Parts | None]] = {}
        for number, ((began, what, inside), end) in enumerate(zip(list(self._began), ends, strict=False)):
            spent = end - max(began, since)
            if spent >= _WORTH_TELLING or number == len(ends) - 1:
                found[what] = found.get(what, (0.0, None))[0] + max(0.0, spent), inside
        texts = []
        for what, (spent, inside) in found.items():
            within = "" if inside is None else inside.told(since, now)
            texts.append(f"{spent:.1f} s {what}" + (f" ({within})" if within else ""))
        return ", ".join(texts)


class Clock:
    """The time of one call. It runs from when it is made."""

    def __init__(self, timeout: float | None = None, *, began: float | None = None) -> None:
        """``timeout``: seconds. None, or if they are for room alone: the call may take as long as it likes."""
        self.began = time.monotonic() if began is None else began
        self.only_room = isinstance(timeout, ForRoom)
        limit = None if timeout is None else checked_timeout(timeout)
        self._timeout = None if self.only_room else limit
        self.until = None if self._timeout is None else self.began + self._timeout
        self.parts = Parts()
        self._advice: Callable[[], str] | None = None

    @property
    def left(self) -> float | None:
        """Seconds, 0 at least. None: no end of them."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())

    def now(self, what: str, inside: Parts | None = None, advice: Callable[[], str] | None = None) -> None:
        """Count the time from here on as this part, with an advice of its own to whoever has no more of it."""
        self.parts.now(what, inside)
        self._advice = advice

    def error(self, more: str | None = None) -> DeadlineError:
        """The error of whoever has run out of time. It says what the time went into, and ``more``, or an advice."""
        if more is None:
            more = ADVICE if self._advice is None else self._advice()
        now = time.monotonic()
        told = self.parts.told(self.began, now)
        return DeadlineError(f"The time was up after {now - self.began:.1f} s{told and f': {told}'}. {more}")


def wait_for(steps: Steps[T], clock: Clock) -> T:
    """Do work in this thread, as long as there is time.

    Raises:
        DeadlineError: there is none left. Whatever the work was waiting for learns that nobody waits any more.
    """
    with closing(steps):
        try:
            while True:
                future = next(steps)
                if not one_is_done((future,), clock.left):
                    raise clock.error()
        except StopIteration as end:
            result: T = end.value
            return result


def one_is_done(futures: Sequence[Future[Any]], seconds: float | None) -> bool:
    """Wait until one of these is done, and return whether one is within so many seconds. A cancelled one is done, too.

    ``concurrent.futures.wait`` does not wake for a future that is cancelled before it runs: whoever waited for a model
    that others had given up would wait until the time was up.
    """
    woken = threading.Event()
    for future in futures:
        future.add_done_callback(lambda _: woken.set())
    return woken.wait(seconds)


async def await_for(steps: Steps[T], clock: Clock) -> T:
    """Wait for the steps in an event loop, which goes on meanwhile. Where the task is cancelled, so is the work."""
    with closing(steps):
        try:
            while True:
                future = next(steps)
                if not await _is_done(future, clock.left):
                    raise clock.error()
        except StopIteration as end:
            result: T = end.value
            return result


async def _is_done(future: Future[Any], seconds: float | None) -> bool:
    """Whether it is, within so many seconds. Whoever stops waiting leaves nothing in the event loop."""
    import asyncio

    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(woken.cancel)

    future.add_done_callback(wake)
    await asyncio.wait((woken,), timeout=seconds)
    return future.done()


ADVICE = "Allow more time, or load models beforehand: engine().load(...)."
