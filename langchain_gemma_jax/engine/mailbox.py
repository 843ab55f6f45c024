"""From the owner thread to one caller, whether that waits in a thread or in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue that is read by ``get`` from any thread, or by ``aget`` from any event loop.

    One reader at a time. Nothing here waits with a lock held except on the condition itself.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def put(self, item: T) -> None:
        """Deliver. Never blocks, never fails."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            loop, future = waiter
            with contextlib.suppress(RuntimeError):  # its loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_wake, future)

    def get(self, timeout: float | None = None) -> T:
        """The next item.

        Raises:
            TimeoutError: none came in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._items), timeout):
                raise TimeoutError
            return self._items.popleft()

    async def aget(self, timeout: float | None = None) -> T:
        """The next item, without blocking the event loop.

        Raises:
            TimeoutError: none came in time.
        """
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            while True:
                future = loop.create_future()
                with self._changed:
                    if self._items:
                        return self._items.popleft()
                    self._waiter = (loop, future)
                await future


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():  # its task may have been cancelled meanwhile
        future.set_result(None)
