"""``Clock``: the time limit of one call, and the parts of the call that took the time."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from langchain_gemma_jax.engine.base.checks import checked_timeout
from langchain_gemma_jax.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

T = TypeVar("T")

Steps: TypeAlias = "Generator[Future[Any], None, T]"
"""Work in steps: each step yields a future that must be done before the next one. So a thread and an event loop can
wait for the same work, each in its own way: see ``wait_for`` and ``await_for``."""

_WORTH_TELLING = 0.05  # seconds


MOST = 64  # the latest standstills to keep: more than one request meets


class TimeSpan(NamedTuple):
    """A part of a time, from ``began`` to ``end`` by ``time.monotonic()``."""

    began: float
    end: float
    what: str


class Standstills:
    """The latest times in which one owner thread stood still. Only that thread adds to them; any thread may read."""

    def __init__(self) -> None:
        self._over: deque[TimeSpan] = deque(maxlen=MOST)
        self._now: TimeSpan | None = None  # without an end
        self.seconds = 0.0  # of all that are over

    @contextmanager
    def here(self, what: str) -> Iterator[None]:
        """Count a ``with`` block as a standstill."""
        began = time.monotonic()
        self._now = TimeSpan(began, float("inf"), what)
        try:
            yield
        finally:
            ended = time.monotonic()
            self._over.append(TimeSpan(began, ended, what))
            self.seconds += ended - began
            self._now = None

    def lasting(self) -> TimeSpan | None:
        """Return the standstill that goes on, up to now. None: there is none."""
        now = self._now
        return None if now is None else TimeSpan(now.began, time.monotonic(), now.what)

    def between(self, began: float, end: float) -> list[TimeSpan]:
        """Return the standstills between these times, cut to them."""
        now = self._now  # read first: a standstill that ends just then may be found twice, but is not missed
        found = {each.began: each for each in [*([] if now is None else [now]), *self._over.copy()]}
        cut = (TimeSpan(max(began, each.began), min(end, each.end), each.what) for each in found.values())
        return [each for each in cut if each.end > each.began]


class ForRoom(float):
    """A limit in seconds for waiting for room in memory, and for no other part of a call."""


class Parts:
    """The consecutive parts of a call's time."""

    def __init__(self) -> None:
        self._began: list[tuple[float, str, Parts | None]] = []

    def now(self, what: str, inside: Parts | None = None, at: float | None = None) -> None:
        """Begin a part now, or at the time ``at``; ``inside`` divides it further."""
        self._began.append((time.monotonic() if at is None else at, what, inside))

    def become(self, what: str) -> None:
        """Begin a part, unless it is the current one."""
        if self.last != what:
            self.now(what)

    def spans(self, now: float) -> list[TimeSpan]:
        """Return the parts one after the other, the last one up to ``now``."""
        parts = list(self._began)
        ends = [began for began, _, _ in parts[1:]] + [now]
        return [TimeSpan(began, end, what) for (began, what, _), end in zip(parts, ends, strict=True)]

    @property
    def last(self) -> str:
        """The current part."""
        return self._began[-1][1] if self._began else ""

    def text(self, since: float, now: float) -> str:
        """Return the parts between two times as text, each with its seconds; "" if there are none."""
        ends = [began for began, _, _ in self._began[1:]] + [now]
        found: dict[str, tuple[float, Parts | None]] = {}
        for number, ((began, what, inside), end) in enumerate(zip(list(self._began), ends, strict=False)):
            spent = end - max(began, since)
            if spent >= _WORTH_TELLING or number == len(ends) - 1:
                found[what] = found.get(what, (0.0, None))[0] + max(0.0, spent), inside
        texts = []
        for what, (spent, inside) in found.items():
            within = "" if inside is None else inside.text(since, now)
            texts.append(f"{spent:.1f} s {what}" + (f" ({within})" if within else ""))
        return ", ".join(texts)


class Clock:
    """The clock of one call, which starts when it is made."""

    def __init__(self, timeout: float | None = None, *, began: float | None = None) -> None:
        """``timeout``: seconds. With None or a ``ForRoom``, the call itself has no limit."""
        self.began = time.monotonic() if began is None else began
        self.only_room = isinstance(timeout, ForRoom)
        limit = None if timeout is None else checked_timeout(timeout)
        self._timeout = None if self.only_room else limit
        self.until = None if self._timeout is None else self.began + self._timeout
        self.parts = Parts()
        self._advice: Callable[[], str] | None = None

    @property
    def left(self) -> float | None:
        """The remaining seconds, at least 0. None: no limit."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())

    def now(self, what: str, inside: Parts | None = None, advice: Callable[[], str] | None = None) -> None:
        """Begin a part, with its own advice for the error if the time runs out in it."""
        self.parts.now(what, inside)
        self._advice = advice

    def error(self, more: str | None = None) -> DeadlineError:
        """Return the error for running out of time. It has the parts of the time, and ``more`` or an advice."""
        if more is None:
            more = ADVICE if self._advice is None else self._advice()
        now = time.monotonic()
        parts = self.parts.text(self.began, now)
        return DeadlineError(f"The time was up after {now - self.began:.1f} s{parts and f': {parts}'}. {more}")


def wait_for(steps: Steps[T], clock: Clock) -> T:
    """Do work in this thread, within the clock's time.

    Raises:
        DeadlineError: the time is up. The work is closed, so that it can cancel what it was waiting for.
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
    """Wait until one of these is done. Return False if none is within this many seconds. A cancelled one is done, too.

    ``concurrent.futures.wait`` does not wake for a future that is cancelled before it runs: a caller that waits for a
    model whose load was given up would wait until the time was up.
    """
    woken = threading.Event()
    for future in futures:
        future.add_done_callback(lambda _: woken.set())
    return woken.wait(seconds)


async def await_for(steps: Steps[T], clock: Clock) -> T:
    """Do work in an event loop without blocking it. If the task is cancelled, so is the work."""
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
    """Wait for a future. Return False if it is not done within this many seconds. Leaves nothing in the event loop."""
    import asyncio

    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(woken.cancel)

    future.add_done_callback(wake)
    await asyncio.wait((woken,), timeout=seconds)
    return future.done()


ADVICE = "Allow more time, or load models beforehand: engine().load(...)."
