"""The end of work that nobody waits for any more: one flag, and whatever takes long looks at it.

    for message in looking(messages):  # in a stage of a call, wherever it runs through many pieces
        ...
    check()                            # before and behind what cannot be divided
    with current().then(child.kill):   # what runs elsewhere, such as in another process, is ended by whoever asks
        child.wait(current().left)

A stage needs no argument for that. Whoever begins a call says ``with Stop(until).over_this_work():`` in the thread that
does it, and all below finds the flag by ``current``. It is set when the deadline has passed, when the caller leaves,
and when the process ends; ``StoppedError`` then goes through the stage like any other error, and is made the error
that its caller gets where the call was begun. Where nobody said so, only the end of the process stops the work.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from langchain_gemma_jax.errors import GemmaJaxError

T = TypeVar("T")

EVERY = 256  # pieces between two looks


class StoppedError(GemmaJaxError):
    """Work was stopped, because nobody waited for it any more."""


class Stop:
    """A wish that something ends. Any thread may have it; whoever does the work looks."""

    def __init__(self, until: float | None = None) -> None:
        """``until``: the ``time.monotonic()`` from which on nobody waits. None: there is no deadline."""
        self.asked: Future[None] = Future()  # done when it is to end
        self._until = until
        self._actions: list[Callable[[], None]] = []
        self.call(self._act)

    @property
    def left(self) -> float | None:
        """Seconds that the work has, 0 at least. None: no end of them."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def ask(self) -> None:
        """Have it end. May be called twice."""
        with suppress(InvalidStateError):
            self.asked.set_result(None)

    def check(self) -> None:
        """Stop work that may not go on.

        Raises:
            StoppedError: it has to end.
        """
        if self.asked.done() or self.left == 0.0:
            raise StoppedError(
                "This was stopped, because nobody waited for it any more: its time was up, whoever had asked for it "
                "left, or the process is ending. Ask for it again."
            )

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until it has to end.

        Raises:
            StoppedError: it has to end.
        """
        left = self.left
        wait((self.asked,), seconds if left is None else min(seconds, left))
        self.check()

    def call(self, action: Callable[[], None]) -> None:
        """Have this done by whoever asks for the end, at once if it was asked for already. Deadlines ask nobody."""
        self.asked.add_done_callback(lambda _: action())

    @contextmanager
    def then(self, action: Callable[[], None]) -> Iterator[None]:
        """Have this done by whoever asks for the end while what is inside goes on. It may be done twice.

        A deadline asks nobody: whoever waits inside, waits for ``left`` seconds at most.
        """
        self._actions.append(action)
        try:
            if self.asked.done():
                action()
            yield
        finally:
            self._actions.remove(action)

    @contextmanager
    def over_this_work(self) -> Iterator[None]:
        """Have all that is done inside, in this thread, look at this stop; the end of the process asks it too."""
        _works.begin(self)
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            _works.end(self)

    def _act(self) -> None:
        for action in list(self._actions):
            action()


class _Works:
    """The stops of all work that is under way in this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may end the process in the midst of it
        self._stops: list[Stop] = []
        self._over = False

    def begin(self, stop: Stop) -> None:
        with self._lock:
            self._stops.append(stop)
            over = self._over
        if over:
            stop.ask()

    def end(self, stop: Stop) -> None:
        with self._lock:
            self._stops.remove(stop)

    def end_all(self) -> None:
        with self._lock:
            self._over, stops = True, list(self._stops)
        for stop in (*stops, _unbounded):
            stop.ask()


_unbounded = Stop()
_works = _Works()
_current: ContextVar[Stop] = ContextVar("stop", default=_unbounded)


def current() -> Stop:
    """Return the stop of the work that this thread does. There always is one."""
    return _current.get()


def check() -> None:
    """Stop this thread's work if it may not go on.

    Raises:
        StoppedError: it has to end.
    """
    _current.get().check()


def looking(pieces: Iterable[T], every: int = EVERY) -> Iterator[T]:
    """Give the pieces of this thread's work, and look every few of them, before the first too, whether it may go on.

    Raises:
        StoppedError: it has to end.
    """
    stop = _current.get()
    for number, piece in enumerate(pieces):
        if number % every == 0:
            stop.check()
        yield piece


def end_with_process() -> None:
    """Stop all work of this process, also such as begins later: it is about to end."""
    _works.end_all()


def _after_fork_in_child() -> None:
    global _works  # noqa: PLW0603  its threads did not come along, and its lock may be held by one of them
    _works = _Works()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
