"""``RoomQueue``: demands for room, first come, first served, and the models to load again. For the owner thread."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State


@dataclass(eq=False)
class Demand:
    """A demand for room for a model."""

    entry: LedgerEntry
    since: float
    wanted: Callable[[], bool] | None  # returns True while it is wanted. None: the caller cancels it with `abandon`
    granted: Future[None] = field(default_factory=Future)


class QueueHost(Protocol):
    """The part of the engine that the queue needs."""

    def load_again(self, known: KnownModel) -> None:
        """Begin to load a model again, for which there is room now."""
        ...

    def is_waited_for(self, known: KnownModel) -> bool:
        """Return True if requests wait for a model."""
        ...

    def refuse(self, known: KnownModel, error: Exception) -> None:
        """End the requests that wait for a model which cannot be loaded."""
        ...


class RoomQueue:
    """The queue of demands for room, and the models that are being loaded again."""

    def __init__(self, host: QueueHost) -> None:
        self._host = host
        self._line: deque[Demand] = deque()
        self._coming: dict[KnownModel, Future[None]] = {}  # models to load again

    @property
    def waits(self) -> bool:
        """True if there are demands."""
        return bool(self._line)

    def blocked(self, now: float) -> bool:
        """Return True if a demand has waited as long as its load takes: then it is not overtaken any more."""
        return any(now - demand.since > demand.entry.load_s for demand in self._line)

    def line_up(self, entry: LedgerEntry, wanted: Callable[[], bool] | None = None) -> Future[None]:
        """Queue for room for a model. When it is granted, the bytes are reserved."""
        demand = Demand(entry, time.monotonic(), wanted)
        self._line.append(demand)
        return demand.granted

    def want(self, known: KnownModel, waiter: Callable[[], bool] | None = None) -> Future[None]:
        """Load a model again, if it is not in memory. The future is done when it is.

        Args:
            known: the model.
            waiter: returns True while a caller other than waiting requests wants it; None: there is none.
        """
        if known.entry.state is State.RESIDENT:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        if (coming := self._coming.get(known)) is not None:
            return coming
        coming = self._coming[known] = Future()

        def wanted() -> bool:
            return (waiter is not None and waiter()) or self._host.is_waited_for(known)

        self.line_up(known.entry, wanted).add_done_callback(lambda found: self._granted(known, found))
        return coming

    def first(self) -> Demand | None:
        """Return the next demand. Demands that are not wanted any more are removed."""
        while self._line:
            demand = self._line[0]
            if not demand.granted.done() and (demand.wanted is None or demand.wanted()):
                return demand
            self._leave(demand)
        return None

    def grant(self, demand: Demand) -> None:
        """Grant the first demand, whose bytes have been reserved."""
        self._line.popleft()
        demand.granted.set_result(None)

    def refuse(self, demand: Demand, error: Exception) -> None:
        """Refuse the first demand, for which there will never be room."""
        demand.granted.set_exception(again(error))
        self._leave(demand)

    def arrived(self, known: KnownModel) -> None:
        """Complete the future of a model that was loaded again."""
        if (coming := self._coming.pop(known, None)) is not None:
            coming.set_result(None)

    def failed(self, known: KnownModel, error: Exception) -> None:
        """Fail the future and the requests of a model that could not be loaded again."""
        known.entry.reset()
        if (coming := self._coming.pop(known, None)) is not None and not coming.done():
            coming.set_exception(error)
        self._host.refuse(known, error)

    def abandon(self, entry: LedgerEntry) -> None:
        """Remove the demands of a model."""
        self._line = deque(demand for demand in self._line if demand.entry is not entry)

    def end(self) -> None:
        """Fail all demands, because the engine ends."""
        for demand in self._line:
            if not demand.granted.done():
                demand.granted.set_exception(closed())
        for coming in list(self._coming.values()):
            if not coming.done():
                coming.set_exception(closed())
        self._line.clear()
        self._coming.clear()

    def _leave(self, demand: Demand) -> None:
        self._line.popleft()
        demand.granted.cancel()

    def _granted(self, known: KnownModel, grant: Future[None]) -> None:
        """Load a model whose demand was granted; give up one whose demand failed."""
        if grant.cancelled():
            self._coming.pop(known).cancel()
        elif isinstance(error := grant.exception(), Exception):
            self.failed(known, error)
        else:
            self._host.load_again(known)
