"""Budgets of the whole process for reading media: so many bytes at a time, so many processes that draw documents."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_gemma_jax.stopping import current


class MediaBudget:
    """An amount that work shares. Whoever finds too little of it left waits, the first one first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    def take(self, amount: int) -> int:
        """Take an amount, as soon as there is so much, and return what was taken: all that there is at most.

        Raises:
            StoppedError: nobody waits for the work any more.
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
        """Have an amount while what is inside goes on."""
        held = self.take(amount)
        try:
            yield
        finally:
            self.give_back(held)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Lease:
    """The share of a budget that one piece of work has. Closing it gives the share back."""

    def __init__(self, budget: MediaBudget) -> None:
        self._budget = budget
        self.held = 0

    def need(self, amount: int) -> None:
        """Have this amount at least.

        What is held already is given back before more is waited for, so that no two leases wait for each other. A
        medium's first call asks for all that its later ones will need, while nothing of it is in memory.

        Raises:
            StoppedError: nobody waits for the work any more.
        """
        if min(amount, self._budget.most) > self.held:
            self.close()
            self.held = self._budget.take(amount)

    def close(self) -> None:
        held, self.held = self.held, 0
        self._budget.give_back(held)


@contextmanager
def leased(lease: Lease | None = None) -> Iterator[Lease]:
    """Have the lease of somebody who keeps it, or one of the memory for media that ends with what is inside."""
    own = Lease(memory()) if lease is None else lease
    try:
        yield own
    finally:
        if lease is None:
            own.close()


class _Shared:
    """What all of this process share. A child that was forked begins anew: its threads did not come along."""

    def __init__(self) -> None:
        self.memory = MediaBudget(1 << 30)
        self.drawing = MediaBudget(8)


_shared = _Shared()


def memory() -> MediaBudget:
    """Return the budget of bytes that media may take while they are decoded and prepared, all together."""
    return _shared.memory


def drawing() -> MediaBudget:
    """Return the budget of processes that draw documents."""
    return _shared.drawing


def _after_fork_in_child() -> None:
    global _shared  # noqa: PLW0603  as above
    _shared = _Shared()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
