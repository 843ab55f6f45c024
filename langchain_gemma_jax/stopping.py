"""Stopping of work whose result is not needed any more: long work checks a flag.

    for message in looking(messages):  # in a stage of a call that loops over many pieces
        ...
    check()                            # before and after work that cannot be divided
    with current().then(child.kill):   # work elsewhere, such as in another process, is ended by the thread that asks
        child.wait(current().left)

A stage needs no argument for this. The code that begins a call runs it ``with Stop(until).over_this_work():`` in its
thread, and everything below gets the flag by ``current``. It is set when the deadline has passed, when the caller stops
waiting, and when the process ends. ``StoppedError`` then propagates like any other error, and the code that began the
call turns it into the caller's error. Without a ``Stop``, only the end of the process stops the work.
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

EVERY = 256  # pieces between two checks


class StoppedError(GemmaJaxError):
    """Work was stopped, because its result was not needed any more."""


class Stop:
    """A flag that asks work to end. Any thread may set it; the thread that works checks it."""

    def __init__(self, until: float | None = None) -> None:
        """``until``: the deadline, by ``time.monotonic()``. None: there is no deadline."""
        self.asked: Future[None] = Future()  # done when the work should end
        self._until = until
        self._actions: list[Callable[[], None]] = []
        self.call(self._act)

    @property
    def left(self) -> float | None:
        """The seconds that the work has left, at least 0. None: no limit."""
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def ask(self) -> None:
        """Ask the work to end. It may be called twice."""
        with suppress(InvalidStateError):
            self.asked.set_result(None)

    def check(self) -> None:
        """Raise an error if the work should end.

        Raises:
            StoppedError: the work was asked to end, or its deadline has passed.
        """
        if self.asked.done() or self.left == 0.0:
            raise StoppedError(
                "This was stopped, because its result was not needed any more: its time was up, the caller had left, "
                "or the process is ending. Ask for it again."
            )

    def sleep(self, seconds: float) -> None:
        """Wait this number of seconds, or until the work should end.

        Raises:
            StoppedError: the work should end.
        """
        left = self.left
        wait((self.asked,), seconds if left is None else min(seconds, left))
        self.check()

    def call(self, action: Callable[[], None]) -> None:
        """Run a function when the end is asked for, or now if it was, in that thread. Deadlines do not run it."""
        self.asked.add_done_callback(lambda _: action())

    @contextmanager
    def then(self, action: Callable[[], None]) -> Iterator[None]:
        """Run a function if the end is asked for during the ``with`` block, in that thread. It may be run twice.

        A deadline does not run it, so waiting in the block must be limited to ``left`` seconds.
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
        """Make this the current stop of this thread in a ``with`` block. The end of the process sets it, too."""
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
    """The stops of all running work in this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may end the process while it is held
        self._stops: list[Stop] = []
        self._over = False
        self.unbounded = Stop()  # of work that nothing but the end of the process stops

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
        for stop in (*stops, self.unbounded):
            stop.ask()


_works = _Works()
_current: ContextVar[Stop | None] = ContextVar("stop", default=None)


def current() -> Stop:
    """Return the stop of this thread's work. There is always one."""
    return _current.get() or _works.unbounded


def check() -> None:
    """Raise an error if this thread's work should end.

    Raises:
        StoppedError: the work should end.
    """
    current().check()


def looking(pieces: Iterable[T], every: int = EVERY) -> Iterator[T]:
    """Yield the pieces of this thread's work, and check before the first and after every few whether it should end.

    Raises:
        StoppedError: the work should end.
    """
    stop = current()
    for number, piece in enumerate(pieces):
        if number % every == 0:
            stop.check()
        yield piece


def end_with_process() -> None:
    """Stop all work of this process, including work that begins later, because the process is about to end."""
    _works.end_all()


def _after_fork_in_child() -> None:
    global _works  # noqa: PLW0603  its threads do not exist here, and one of them may have held its lock
    _works = _Works()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
