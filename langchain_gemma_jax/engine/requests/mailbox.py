"""From the owner thread to one caller, whether that waits in a thread or in an event loop.

There is no lock that both hold. A caller can be interrupted anywhere, by a signal whose handler waits for the owner
thread: if that waited for something which the caller held, neither would ever go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue that is read by ``get`` from any thread, or by ``aget`` from any event loop.

    What is put with ``last=True`` is never taken out: however many read, each of them learns of the end. One thread
    alone puts.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._last: tuple[T] | None = None  # set behind all items
        self._sleepers: deque[threading.Lock] = deque()  # held until something was put
        self._waiters: deque[tuple[LoopWaker, asyncio.Future[None]]] = deque()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come: whoever reads does not have to wait."""
        return self._last is not None

    def put(self, item: T, *, last: bool = False) -> None:
        """Deliver. Never blocks, never fails. What comes after the last item is dropped."""
        if self._last is not None:
            return
        if last:
            self._last = (item,)
        else:
            self._items.append(item)
        try:
            for _ in range(len(self._sleepers)):
                self._sleepers.popleft().release()
        except IndexError:  # one gave up just now, and so nobody waits
            pass
        try:
            for _ in range(len(self._waiters)):
                waker, future = self._waiters.popleft()
                waker.wake(future)
        except IndexError:
            pass

    def get(self, timeout: float | None = None) -> T:
        """The next item.

        Raises:
            TimeoutError: none came in time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (found := self._take()) is None:
            sleeper, woken = threading.Lock(), False
            sleeper.acquire()
            self._sleepers.append(sleeper)
            try:
                if (found := self._take()) is not None:  # it came before anybody knew that this one waits
                    break
                left = -1 if until is None else min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)
                woken = sleeper.acquire(timeout=left)
                if not woken:
                    if (found := self._take()) is not None:
                        break
                    raise TimeoutError
            finally:
                if not woken:
                    with contextlib.suppress(ValueError):  # it was woken just now
                        self._sleepers.remove(sleeper)
        return found[0]

    async def aget(self, timeout: float | None = None) -> T:  # noqa: ASYNC109  as ``get`` has it
        """The next item, without blocking the event loop.

        Raises:
            TimeoutError: none came in time.
        """
        if timeout is None:
            return await self._anext()
        async with asyncio.timeout(timeout):
            return await self._anext()

    async def _anext(self) -> T:
        loop = asyncio.get_running_loop()
        while (found := self._take()) is None:
            waiter, woken = (waker_of(loop), loop.create_future()), False
            self._waiters.append(waiter)
            try:
                if (found := self._take()) is not None:  # it came before anybody knew that this one waits
                    break
                await waiter[1]
                woken = True
            finally:
                if not woken:
                    with contextlib.suppress(ValueError, IndexError):  # it was woken just now, or others came and went
                        self._waiters.remove(waiter)
        return found[0]

    def _take(self) -> tuple[T] | None:
        """The next item, if there is one."""
        last = self._last  # read first: if it is there, so were all items
        try:
            return (self._items.popleft(),)
        except IndexError:
            return last


class LoopWaker:
    """Wakes those who wait in one event loop. Another thread that wakes many in a row disturbs the loop once.

    Disturbing a loop is a system call, and the thread that does it is the one that all requests wait for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)  # which keeps this
        self._woken: deque[asyncio.Future[None]] = deque()
        self._disturbed = False

    def wake(self, future: asyncio.Future[None]) -> None:
        """Wake one. Any thread may call this; what it appends is seen, or the loop is disturbed once more."""
        self._woken.append(future)
        if self._disturbed:
            return
        self._disturbed = True
        try:
            if (loop := self._loop()) is not None:
                loop.call_soon_threadsafe(self._wake_all)
        except RuntimeError:  # it was closed: nobody waits there any more
            self._disturbed = False
            self._woken.clear()

    def _wake_all(self) -> None:
        self._disturbed = False  # first: what comes from here on disturbs anew
        with contextlib.suppress(IndexError):
            while True:
                future = self._woken.popleft()
                if not future.done():  # its task may have been cancelled meanwhile
                    future.set_result(None)


_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWaker] = weakref.WeakKeyDictionary()


def waker_of(loop: asyncio.AbstractEventLoop) -> LoopWaker:
    """Return what wakes those who wait in an event loop. Called in that loop."""
    found = _wakers.get(loop)
    if found is None:
        found = _wakers[loop] = LoopWaker(loop)
    return found
