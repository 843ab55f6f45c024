"""What callers send to the owner thread. Whatever is taken is answered, also while the thread ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeAlias, TypeVar

from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.errors import ClosedError

T = TypeVar("T")
Item: TypeAlias = Request | Callable[[], None] | None
"""A request; something to run between two dispatches; or None, to be looked at."""


class Inbox:
    """Requests and calls, in the order in which they were sent."""

    def __init__(self) -> None:
        self.closing = False
        self.queued = 0  # requests that were not begun yet
        self._ended = False  # nobody looks any more
        self._gate = threading.Lock()  # what is sent comes before the end, or is refused
        self._items: SimpleQueue[Item] = SimpleQueue()

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Have a request carried out: what comes of it goes to its mailbox. False: too many wait.

        Raises:
            ClosedError: the engine has ended.
        """
        with self._gate:
            if self._ended:
                raise closed()
            if self.queued >= max_waiting:
                return False
            self.queued += 1
            request.queued = True
            self._items.put(request)
        return True

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Have the owner thread run this between two dispatches."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(self._while_open(function))
            except BaseException as error:  # noqa: BLE001  it is raised where it was asked for
                future.set_exception(error)

        with self._gate:
            if not self._ended:
                self._items.put(run)
                return future
        run()  # which raises
        return future

    def close(self) -> None:
        """Nothing is begun from now on."""
        self.closing = True
        self._items.put(None)

    # For the owner thread.

    def get(self, timeout: float | None) -> Item:
        """The next item.

        Raises:
            Empty: none came within so many seconds. None: wait for ever.
        """
        return self._items.get(timeout=timeout) if timeout is None or timeout > 0 else self._items.get_nowait()

    def begun(self, request: Request) -> None:
        """A request does not wait any more."""
        if request.queued:
            request.queued = False
            with self._gate:
                self.queued -= 1

    def end(self) -> list[Request]:
        """Nobody looks any more. Gives the requests that are left; calls have got their error."""
        self.closing = True
        with self._gate:
            self._ended = True
        left: list[Request] = []
        with suppress(Empty):
            while True:
                item = self._items.get_nowait()
                if isinstance(item, Request):
                    left.append(item)
                elif item is not None:
                    item()
        return left

    def _while_open(self, function: Callable[[], T]) -> T:
        if self.closing:
            raise closed()
        return function()


def closed() -> ClosedError:
    """The error of whoever came too late."""
    return ClosedError("The engine was closed before this was done. engine() starts a new one.")
