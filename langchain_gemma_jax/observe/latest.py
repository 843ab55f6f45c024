"""``Latest``: an engine's latest records, for people who watch it: requests that ended, and trips of guards."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from langchain_gemma_jax.engine.base.events import Events, Finished, Tripped

KEPT = 64  # requests, and trips


class HasEvents(Protocol):
    """An engine, as far as it is listened to."""

    @property
    def events(self) -> Events: ...


class Latest:
    """Listens to an engine from the first time that it is followed. It costs an engine nothing before."""

    def __init__(self) -> None:
        self._engine: HasEvents | None = None
        self._ends: tuple[Callable[[], None], ...] = ()  # of listening
        self._lock = threading.Lock()
        self._finished: deque[Finished] = deque(maxlen=KEPT)
        self._trips: deque[Tripped] = deque(maxlen=KEPT)

    def follow(self, engine: HasEvents) -> None:
        """Listen to this engine from now on, and to no other."""
        with self._lock:
            if self._engine is not engine:
                for end in self._ends:
                    end()
                self._engine, events = engine, engine.events
                self._ends = (
                    events.subscribe(Finished, self._finished.append),
                    events.subscribe(Tripped, self._trips.append),
                )

    @property
    def finished(self) -> tuple[Finished, ...]:
        """The latest requests that ended, oldest first."""
        return tuple(self._finished.copy())

    @property
    def trips(self) -> tuple[Tripped, ...]:
        """The latest trips, oldest first."""
        return tuple(self._trips.copy())
