"""``Mailbox``: results from the owner thread to one caller, which waits in a thread or in an event loop.

There is no lock that both hold. A signal can interrupt a caller anywhere, and its handler may wait for the owner
thread: if that waited for a lock that the caller held, this would be a deadlock.
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

    The item that is put with ``last=True`` stays in the mailbox, so every reader sees the end. Only one thread may put.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._last: tuple[T] | None = None  # set after all items
        self._sleepers: deque[threading.Lock] = deque()  # locked until an item is put
        self._waiters: deque[tuple[LoopWaker, asyncio.Future[None]]] = deque()

    @property
    def has_ended(self) -> bool:
        """True if the last item is there, so that no reader has to wait."""
        return self._last is not None

    def put(self, item: T, *, last: bool = False) -> None:
        """Add an item. Never blocks, never fails. Items after the last one are dropped."""
        if self._last is not None:
            return
        if last:
            self._last = (item,)
        else:
            self._items.append(item)
        try:
            for _ in range(len(self._sleepers)):
                self._sleepers.popleft().release()
        except IndexError:  # a reader has just stopped waiting, and there are no others
            pass
        try:
            for _ in range(len(self._waiters)):
                waker, future = self._waiters.popleft()
                waker.wake(future)
        except IndexError:
            pass

    def get(self, timeout: float | None = None) -> T:
        """Take the next item.

        Raises:
            TimeoutError: none came in time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while (found := self._take()) is None:
            sleeper, woken = threading.Lock(), False
            sleeper.acquire()
            self._sleepers.append(sleeper)
            try:
                if (found := self._take()) is not None:  # it came before this reader was registered
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
        """Take the next item, without blocking the event loop.

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
                if (found := self._take()) is not None:  # it came before this reader was registered
                    break
                await waiter[1]
                woken = True
            finally:
                if not woken:
                    with contextlib.suppress(ValueError, IndexError):  # it was woken just now, or others came and went
                        self._waiters.remove(waiter)
        return found[0]

    def _take(self) -> tuple[T] | None:
        """Take the next item, if there is one."""
        last = self._last  # read first: if it is set, all items have been added
        try:
            return (self._items.popleft(),)
        except IndexError:
            return last


class LoopWaker:
    """Wakes the readers in one event loop. If another thread wakes many in a row, the loop is interrupted once.

    Interrupting a loop is a system call, made by the owner thread, which all requests wait for.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)  # weak: the loop keeps this object
        self._woken: deque[asyncio.Future[None]] = deque()
        self._disturbed = False

    def wake(self, future: asyncio.Future[None]) -> None:
        """Wake one reader. Any thread may call this: either the loop still sees it, or is interrupted once more."""
        self._woken.append(future)
        if self._disturbed:
            return
        self._disturbed = True
        try:
            if (loop := self._loop()) is not None:
                loop.call_soon_threadsafe(self._wake_all)
        except RuntimeError:  # the loop was closed
            self._disturbed = False
            self._woken.clear()

    def _wake_all(self) -> None:
        self._disturbed = False  # first: a wake from here on interrupts the loop again
        with contextlib.suppress(IndexError):
            while True:
                future = self._woken.popleft()
                if not future.done():  # its task may have been cancelled
                    future.set_result(None)


_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWaker] = weakref.WeakKeyDictionary()


def waker_of(loop: asyncio.AbstractEventLoop) -> LoopWaker:
    """Return the waker of an event loop. Called in that loop."""
    found = _wakers.get(loop)
    if found is None:
        found = _wakers[loop] = LoopWaker(loop)
    return found
