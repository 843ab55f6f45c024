"""Budgets of the whole process for reading media: bytes in memory, and processes that draw documents."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_gemma_jax.stopping import current


class MediaBudget:
    """An amount that pieces of work share. Work that needs more than is left waits, in order of arrival."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    def take(self, amount: int) -> int:
        """Wait until an amount is free, take it, and return it. An amount above the whole budget becomes the budget.

        Raises:
            StoppedError: the work's result is not needed any more.
        """
        amount, stop, turn = min(amount, self.most), current(), object()
        with self._changed:
            self._waiting.append(turn)
        try:
            with stop.then(self._wake), self._changed:
                while self._waiting[0] is not turn or self.held + amount > self.most:
                    stop.check()
                    self._changed.wait(stop.left)
                self.held += amount
        finally:
            with self._changed:
                self._waiting.remove(turn)
                self._changed.notify_all()
        return amount

    def give_back(self, amount: int) -> None:
        """Give back what was taken."""
        with self._changed:
            self.held -= amount
            self._changed.notify_all()

    @contextmanager
    def taken(self, amount: int) -> Iterator[None]:
        """Hold an amount until the end of a ``with`` block."""
        held = self.take(amount)
        try:
            yield
        finally:
            self.give_back(held)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Lease:
    """The share of a budget that one piece of work holds. Closing it gives the share back."""

    def __init__(self, budget: MediaBudget) -> None:
        self._budget = budget
        self.held = 0

    def need(self, amount: int) -> None:
        """Hold at least this amount.

        A lease gives back what it holds before it waits for more, so that two leases never wait for each other. So the
        first call for a medium asks for all that later calls will need: nothing of the medium is in memory then.

        Raises:
            StoppedError: the work's result is not needed any more.
        """
        if min(amount, self._budget.most) > self.held:
            self.close()
            self.held = self._budget.take(amount)

    def close(self) -> None:
        held, self.held = self.held, 0
        self._budget.give_back(held)


@contextmanager
def leased(lease: Lease | None = None) -> Iterator[Lease]:
    """Give the caller's lease, which stays open; without one, a new lease of memory that ends with the block."""
    own = Lease(memory()) if lease is None else lease
    try:
        yield own
    finally:
        if lease is None:
            own.close()


class _Shared:
    """The budgets of this process. A forked child gets new ones: the threads that hold shares are not in it."""

    def __init__(self) -> None:
        self.memory = MediaBudget(1 << 30)
        self.drawing = MediaBudget(8)


_shared = _Shared()


def memory() -> MediaBudget:
    """Return the budget of bytes for all media together, while they are decoded and prepared."""
    return _shared.memory


def drawing() -> MediaBudget:
    """Return the budget of processes that draw documents."""
    return _shared.drawing


def _after_fork_in_child() -> None:
    global _shared  # noqa: PLW0603  a forked child gets new budgets
    _shared = _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
