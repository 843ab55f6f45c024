"""Who waits for room for a model, first come, first served; and which models are wanted back. For the owner thread."""

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
    """Somebody waits for room for a model."""

    entry: LedgerEntry
    since: float
    wanted: Callable[[], bool] | None  # whether somebody still waits. None: whoever does takes it back otherwise
    granted: Future[None] = field(default_factory=Future)


class QueueHost(Protocol):
    """What the queue needs of the engine around it."""

    def load_again(self, known: KnownModel) -> None:
        """Begin to load a model again: there is room for it now."""
        ...

    def is_waited_for(self, known: KnownModel) -> bool:
        """Whether requests wait for a model."""
        ...

    def refuse(self, known: KnownModel, error: Exception) -> None:
        """End the requests that wait for a model: it does not come."""
        ...


class RoomQueue:
    """The line of those who wait for room, and the models that are on their way back."""

    def __init__(self, host: QueueHost) -> None:
        self._host = host
        self._line: deque[Demand] = deque()
        self._coming: dict[KnownModel, Future[None]] = {}  # those that somebody wants to be there again

    @property
    def waits(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._line)

    def blocked(self, now: float) -> bool:
        """Whether somebody has waited for room as long as loading takes: then nobody overtakes any more."""
        return any(now - demand.since > demand.entry.load_s for demand in self._line)

    def line_up(self, entry: LedgerEntry, wanted: Callable[[], bool] | None = None) -> Future[None]:
        """Wait for room for a model. When it is granted, the bytes are reserved."""
        demand = Demand(entry, time.monotonic(), wanted)
        self._line.append(demand)
        return demand.granted

    def want(self, known: KnownModel, waiter: Callable[[], bool] | None = None) -> Future[None]:
        """Have a model loaded again, if it is not there. The future is done when it is.

        Args:
            known: the model.
            waiter: whether somebody beside the requests that wait still wants it; None: nobody.
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
        """Return whose turn it is. Those who want nothing any more leave."""
        while self._line:
            demand = self._line[0]
            if not demand.granted.done() and (demand.wanted is None or demand.wanted()):
                return demand
            self._leave(demand)
        return None

    def grant(self, demand: Demand) -> None:
        """Tell who is first that there is room: the bytes are reserved."""
        self._line.popleft()
        demand.granted.set_result(None)

    def refuse(self, demand: Demand, error: Exception) -> None:
        """Tell who is first that there will never be room."""
        demand.granted.set_exception(again(error))
        self._leave(demand)

    def arrived(self, known: KnownModel) -> None:
        """Tell those who want a model back that it is there."""
        if (coming := self._coming.pop(known, None)) is not None:
            coming.set_result(None)

    def failed(self, known: KnownModel, error: Exception) -> None:
        """Tell everybody who waits for a model why it could not be loaded again."""
        known.entry.reset()
        if (coming := self._coming.pop(known, None)) is not None and not coming.done():
            coming.set_exception(error)
        self._host.refuse(known, error)

    def abandon(self, entry: LedgerEntry) -> None:
        """Nobody wants room for a model any more."""
        self._line = deque(demand for demand in self._line if demand.entry is not entry)

    def end(self) -> None:
        """The engine ends: nobody waits any more."""
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

    def _granted(self, known: KnownModel, found: Future[None]) -> None:
        """Load a model whose turn it is; give up one that will not come."""
        if found.cancelled():
            self._coming.pop(known).cancel()
        elif isinstance(error := found.exception(), Exception):
            self.failed(known, error)
        else:
            self._host.load_again(known)
