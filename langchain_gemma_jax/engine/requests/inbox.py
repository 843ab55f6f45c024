"""``Inbox``: requests and calls from callers to the owner thread. Each gets an answer, also while the thread ends.

The owner thread takes no lock that callers hold: see ``mailbox.py``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, NoReturn, TypeAlias, TypeVar

from langchain_gemma_jax.engine.requests.mailbox import Mailbox
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.errors import ClosedError

T = TypeVar("T")
Item: TypeAlias = Request | Callable[[], None] | None
"""A request; a function to run between two dispatches; or None, which only wakes the owner thread."""


@dataclass(frozen=True)
class Returned(Generic[T]):
    """The result of a call."""

    value: T

    def give(self) -> T:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class Raised:
    """The error of a call."""

    error: BaseException

    def give(self) -> NoReturn:
        """Re-raise the call's error."""
        raise self.error


class Inbox:
    """Requests and calls, in the order of sending."""

    def __init__(self) -> None:
        self.closing = False
        self._ended = False  # the owner thread does not read it any more
        self._waiting: set[Request] = set()  # requests that have not begun
        # For callers alone. A signal handler may run this code again in the same thread: then one too many may wait.
        self._admission = threading.RLock()
        self._items: SimpleQueue[Item] = SimpleQueue()

    @property
    def queued(self) -> int:
        """The number of requests that wait to begin."""
        return len(self._waiting)

    @property
    def waiting(self) -> tuple[Request, ...]:
        """The requests that wait to begin, in the order in which they came."""
        return tuple(sorted(self._waiting.copy(), key=lambda request: request.asked.number))

    @property
    def oldest_wait_s(self) -> float:
        """The longest time that a request has waited, in seconds; 0 if none waits."""
        since = min((request.asked.submitted_at for request in tuple(self._waiting)), default=None)
        return 0.0 if since is None else time.monotonic() - since

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Send a request, whose results go to its mailbox. Return False if too many wait.

        Raises:
            ClosedError: the engine has ended.
        """
        if self._ended:
            raise closed()
        with self._admission:
            if len(self._waiting) >= max_waiting:
                return False
            try:  # also around the first statement: an interrupt can come after it
                self._waiting.add(request)
                self._put(request)
            except BaseException:
                self.begun(request)
                raise
        return True

    def call(self, function: Callable[[], T]) -> Mailbox[Returned[T] | Raised]:
        """Run a function on the owner thread, between two dispatches."""
        answer: Mailbox[Returned[T] | Raised] = Mailbox()

        def run() -> None:
            outcome: Returned[T] | Raised
            try:
                outcome = Returned(self._while_open(function))
            except BaseException as error:  # noqa: BLE001  it is raised in the caller
                outcome = Raised(error)
            answer.put(outcome, last=True)

        self._put(run)
        return answer

    def close(self) -> None:
        """Close the inbox: no more requests are begun."""
        self.closing = True
        self._items.put(None)

    # For the owner thread.

    def get(self, timeout: float | None) -> Item:
        """Return the next item.

        Raises:
            Empty: none came within ``timeout`` seconds. With None there is no limit.
        """
        return self._items.get(timeout=timeout) if timeout is None or timeout > 0 else self._items.get_nowait()

    def begun(self, request: Request) -> None:
        """Note that a request has begun, or is not going to."""
        self._waiting.discard(request)

    def end(self) -> list[Request]:
        """End reading. Return the requests that are left; calls that are left get an error."""
        self.closing = self._ended = True
        return self._left()

    def _put(self, item: Item) -> None:
        self._items.put(item)
        if self._ended:  # it may have come after the owner thread's last read, so this thread reads
            for request in self._left():
                self.begun(request)
                request.mailbox.put(closed(), last=True)

    def _left(self) -> list[Request]:
        """Take all items that are left. Return the requests; calls are run, and get an error."""
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
    """Return the error for a caller that came too late."""
    return ClosedError("The engine was closed before this was done. engine() starts a new one.")
