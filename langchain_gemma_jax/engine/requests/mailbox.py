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

    What is put with ``last=True`` is never taken out: however many read, each of them learns of the
    end. Nothing here waits with a lock held except on the condition itself.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._ended = False  # the last item is the end
        self._changed = threading.Condition(threading.Lock())
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def put(self, item: T, *, last: bool = False) -> None:
        """Deliver. Never blocks, never fails. What comes after the last item is dropped."""
        with self._changed:
            if self._ended:
                return
            self._items.append(item)
            self._ended = last
            self._changed.notify_all()
            waiters, self._waiters = self._waiters, []
        for loop, future in waiters:
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
            return self._take()

    async def aget(self, timeout: float | None = None) -> T:  # noqa: ASYNC109  as ``get`` has it
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
                        return self._take()
                    self._waiters = [waiter for waiter in self._waiters if not waiter[1].done()] + [(loop, future)]
                await future

    def _take(self) -> T:
        return self._items[0] if self._ended and len(self._items) == 1 else self._items.popleft()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():  # its task may have been cancelled meanwhile
        future.set_result(None)
