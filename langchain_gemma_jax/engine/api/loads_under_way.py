"""Models on their way into memory, and those who wait for them. Each comes once, in a thread of its own.

Whoever waits takes up no thread: not of an event loop's, not of the engine's. A load that nobody waits for ends when it
looks next, which takes a while where it is inside XLA. Whoever comes meanwhile does not have the same model loaded
beside it: it goes on for them, or ends, and is begun again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

from langchain_gemma_jax.engine.base.guards import CompileCost
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.requests.clock import Parts
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.stopping import Stop

T = TypeVar("T")

AT_ONCE = 32  # models that come at the same time: most of them wait for a network, or for room


class Load(Generic[T]):
    """A model on its way."""

    def __init__(self) -> None:
        self.done: Future[T] = Future()
        self.stop = Stop()  # its downloads end: nobody waited, at some time
        self.left = Stop()  # nobody waits now
        self.parts = Parts()
        self.cold_cost: Callable[[], CompileCost] | None = None  # of a first answer's programs, when these are known
        self.patient = False  # somebody has said how long it may take, or that it may take for ever
        self.goes_on = False  # also if nobody waits: the next one finds it there
        self.waiting = 0

    @property
    def is_wanted(self) -> bool:
        """True if a caller waits for the model."""
        return self.waiting > 0

    @property
    def given_up(self) -> bool:
        """True if the load was asked to stop, while no caller waited or as the engine was closed."""
        return self.stop.asked.done()


class Loads(Generic[T]):
    """The loads under way in one engine, by what was asked for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._coming: dict[Hashable, Load[T]] = {}
        self._threads = Background(AT_ONCE, name="gemma-jax-load")

    @contextmanager
    def join(self, key: Hashable, bring: Callable[[Load[T]], T], *, patient: bool) -> Iterator[tuple[Load[T], bool]]:
        """Wait for a model for as long as a ``with`` block lasts. It begins to come, unless it does already.

        Gives its load, and whether that began here. When the last one leaves, it is asked to stop; it may have been
        before, and ends then by an error that means nothing to who has come since: see ``Load.given_up``.

        Args:
            key: what is asked for.
            bring: how it comes: in another thread, and once.
            patient: see ``Load``.
        """
        with self._lock:
            load = self._coming.get(key)
            begins = load is None
            if load is None:
                load = self._coming[key] = Load()
            load.waiting += 1
            load.patient |= patient
            if load.left.asked.done() and not self._threads.closed:
                load.left = Stop()  # if it gets past its downloads, it goes on
            if begins:
                begun = self._threads.submit(partial(self._run, key, load, bring))
                begun.add_done_callback(partial(_refuse, load))
        try:
            yield load, begins
        finally:
            with self._lock:
                load.waiting -= 1
                if not load.is_wanted and not load.goes_on:
                    load.stop.ask()
                    load.left.ask()

    def go_on(self, load: Load[T]) -> None:
        """Let a load go on to its end from here on, whoever waits.

        Raises:
            StoppedError: nobody does any more.
        """
        with self._lock:
            load.left.check()
            load.goes_on = True

    @property
    def busy(self) -> bool:
        """True if a model is being loaded."""
        return self._threads.busy

    def close(self, timeout: float | None = None) -> bool:
        """Begin nothing more, and have what comes end. Gives whether the threads have ended in time."""
        with self._lock:
            for load in self._coming.values():
                load.stop.ask()
                load.left.ask()
        return self._threads.close(timeout)

    def _run(self, key: Hashable, load: Load[T], bring: Callable[[Load[T]], T]) -> None:
        try:
            found = bring(load)
        except BaseException as error:  # noqa: BLE001  it is for those who wait
            self._forget(key, load)
            load.done.set_exception(error)
        else:
            self._forget(key, load)
            load.done.set_result(found)

    def _forget(self, key: Hashable, load: Load[T]) -> None:
        with self._lock:
            if self._coming.get(key) is load:
                del self._coming[key]


def _refuse(load: Load[T], begun: Future[None]) -> None:
    """Fail a load, if the engine was closed before it was begun."""
    if begun.cancelled():
        load.done.set_exception(closed())
