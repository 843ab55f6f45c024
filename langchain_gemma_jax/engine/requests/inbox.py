"""What callers send to the owner thread. Whatever is taken is answered, also while the thread ends.

The owner thread takes no lock that callers hold: see mailbox.py.
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
"""A request; something to run between two dispatches; or None, to be looked at."""


@dataclass(frozen=True)
class Found(Generic[T]):
    """What a call gave."""

    value: T

    def give(self) -> T:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class Raised:
    """What a call raised."""

    error: BaseException

    def give(self) -> NoReturn:
        """Raises it."""
        raise self.error


class Inbox:
    """Requests and calls, in the order in which they were sent."""

    def __init__(self) -> None:
        self.closing = False
        self._ended = False  # nobody looks any more
        self._waiting: set[Request] = set()  # that were not begun yet
        # For callers alone. The same thread may come twice, for a signal handler: then one too many may wait.
        self._admission = threading.RLock()
        self._items: SimpleQueue[Item] = SimpleQueue()

    @property
    def queued(self) -> int:
        """How many requests wait to be begun."""
        return len(self._waiting)

    @property
    def oldest_wait_s(self) -> float:
        """Seconds that the one has waited which waits longest; 0 if none does."""
        since = min((request.asked.submitted_at for request in tuple(self._waiting)), default=None)
        return 0.0 if since is None else time.monotonic() - since

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Have a request carried out: what comes of it goes to its mailbox. False: too many wait.

        Raises:
            ClosedError: the engine has ended.
        """
        if self._ended:
            raise closed()
        with self._admission:
            if len(self._waiting) >= max_waiting:
                return False
            try:  # also around the first step, which an interrupt can follow
                self._waiting.add(request)
                self._put(request)
            except BaseException:
                self.begun(request)
                raise
        return True

    def call(self, function: Callable[[], T]) -> Mailbox[Found[T] | Raised]:
        """Have the owner thread run this between two dispatches."""
        answer: Mailbox[Found[T] | Raised] = Mailbox()

        def run() -> None:
            outcome: Found[T] | Raised
            try:
                outcome = Found(self._while_open(function))
            except BaseException as error:  # noqa: BLE001  it is raised where it was asked for
                outcome = Raised(error)
            answer.put(outcome, last=True)

        self._put(run)
        return answer

    def close(self) -> None:
        """Close the inbox: nothing is begun from now on."""
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
        self._waiting.discard(request)

    def end(self) -> list[Request]:
        """Nobody looks any more. Gives the requests that are left; calls have got their error."""
        self.closing = self._ended = True
        return self._left()

    def _put(self, item: Item) -> None:
        self._items.put(item)
        if self._ended:  # perhaps behind the last look of the owner thread: so this one looks
            for request in self._left():
                self.begun(request)
                request.mailbox.put(closed(), last=True)

    def _left(self) -> list[Request]:
        """What nobody has taken. Calls are told."""
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
