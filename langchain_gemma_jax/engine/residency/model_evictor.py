"""Carries out what the pool decides: evicts models, moves conversations, gives room to those who wait for it.

For the owner thread, between two dispatches. Who waits for room waits in one line: first come, first served.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.events import Events, ModelEvicted, ModelLoaded
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.gc_pause import let_go
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.engine.residency.eviction_log import EvictionLog
from langchain_gemma_jax.engine.residency.ledger import Grant, Never, Pool
from langchain_gemma_jax.engine.residency.ledger_entry import Entry, KvUse, State
from langchain_gemma_jax.engine.residency.model_record import Known
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, status_of, who_holds_what
from langchain_gemma_jax.engine.residency.status_file import Noticeboard
from langchain_gemma_jax.engine.steps.runner import InFlight, Runner
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import DeviceMemoryError

_GREW = "programs need more than was expected"


@dataclass(eq=False)
class Demand:
    """Somebody waits for room for a model."""

    entry: Entry
    since: float
    granted: Future[None] = field(default_factory=Future)
    wanted: Callable[[], bool] = lambda: True  # by somebody who still waits


class Keeper:
    """The models of an engine, and the memory that they share."""

    def __init__(
        self,
        runners: dict[Hashable, Runner],
        scheduler: Scheduler,
        flights: deque[InFlight],
        metrics: Metrics,
        events: Events,
    ) -> None:
        self._events = events
        self.pool = Pool(lambda _: 0)
        self.log = EvictionLog()
        self._board = Noticeboard()
        self.known: dict[Hashable, Known] = {}
        self.forgotten: Callable[[Known], None] = lambda _: None  # a model left the device
        self.refused: Callable[[Known, Exception], None] = lambda _model, _error: None  # it does not come
        self.fetch: Callable[[Known], None] = lambda _: None  # begin to load a model again: there is room for it now
        self._runners, self._scheduler, self._flights, self._metrics = runners, scheduler, flights, metrics
        self._line: deque[Demand] = deque()
        self._coming: dict[Known, Future[None]] = {}  # those that somebody wants to be there again

    # Who wants a model, or room for one.

    def line_up(self, entry: Entry, wanted: Callable[[], bool] = lambda: True) -> Future[None]:
        """Wait for room for a model. When it is granted, the bytes are reserved."""
        demand = Demand(entry, time.monotonic(), wanted=wanted)
        self._line.append(demand)
        if entry not in self.pool.entries:
            self.pool.entries.append(entry)
        return demand.granted

    def want(self, known: Known, waiter: Callable[[], bool] = lambda: False) -> Future[None]:
        """Have a model loaded again, if it is not there. The future is done when it is.

        Args:
            known: the model.
            waiter: whether somebody beside the requests in the queue still waits for it.
        """
        if known.entry.state is State.RESIDENT:
            done: Future[None] = Future()
            done.set_result(None)
            return done
        if (coming := self._coming.get(known)) is not None:
            return coming
        coming = self._coming[known] = Future()
        granted = self.line_up(known.entry, lambda: waiter() or self._is_waited_for(known))
        granted.add_done_callback(lambda found: self._granted(known, found))
        return coming

    def arrived(self, known: Known, runner: Runner, seconds: float) -> None:
        """A model is in memory."""
        memory = runner.memory
        self._runners[known.served] = runner
        known.entry.kv = lambda: KvUse(memory.nbytes(), memory.busy())
        self.pool.settle(known.entry, time.monotonic(), seconds)
        self._metrics.loads += 1
        self._metrics.load_s += seconds
        self._events.tell(ModelLoaded(known.entry.name, seconds))
        if (coming := self._coming.pop(known, None)) is not None:
            coming.set_result(None)

    def failed(self, known: Known, error: Exception) -> None:
        """A model could not be loaded again. Everybody who waits for it hears why."""
        known.entry.reset()
        if (coming := self._coming.pop(known, None)) is not None and not coming.done():
            coming.set_exception(error)
        self.refused(known, error)

    def blocked(self, now: float) -> bool:
        """Whether somebody has waited for room as long as loading takes: then nobody overtakes any more."""
        return any(now - demand.since > demand.entry.load_s for demand in self._line)

    def may_change(self, model: Hashable) -> bool:
        """Whether memory will come free beside this model without a request's end: others are held, or just loaded."""
        now = time.monotonic()
        others = (known.entry for key, known in self.known.items() if key is not model)
        return any(
            entry.state is State.LOADING
            or (
                entry.state is State.RESIDENT
                and entry.returns
                and not entry.pinned
                and (entry.holds or now < entry.guarded_until)
            )
            for entry in others
        )

    @property
    def waits(self) -> bool:
        """Whether somebody waits for room."""
        return bool(self._line)

    def may_run(self, known: Known, now: float) -> bool:
        """Whether a new request may begin on a model: not if another one waits too long for this one's requests to end.

        One that is idle, and yet was not evicted, is not what the other one waits for.
        """
        entry = known.entry
        may_go = entry.returns and not entry.pinned and not entry.holds
        return not (may_go and entry.running and self.blocked(now))

    # Every round of the loop.

    def round(self) -> None:
        """Look at who uses what, whose time is up, and who can be given room."""
        now = time.monotonic()
        if self._look(now):
            self.shrink(_GREW)
        for entry in self.pool.expired(now):
            idle = "nobody used it" if entry.leaving else f"unused for {entry.keep_alive:g} s"
            self.evict(self._of(entry), "asked to go" if entry.leaving else idle)
        while self._line:
            demand = self._line[0]
            if not demand.granted.done() and demand.wanted():
                decision = self.pool.can_load(demand.entry, now)
                if isinstance(decision, Never):
                    self._refuse(demand, decision)
                elif not isinstance(decision, Grant) or not self._make_room(demand, decision):
                    return
                else:
                    self.pool.reserve(demand.entry)
                    self._line.popleft()
                    demand.granted.set_result(None)
                    continue
            self._line.popleft()
            demand.granted.cancel()

    def patience(self) -> float | None:
        """Seconds until a turn is due though nobody sends anything."""
        now = time.monotonic()
        self._look(now)
        return self.pool.next_change(now)

    def evict(self, known: Known, reason: str) -> None:
        """A model that nobody uses leaves the device: conversations, programs, weights."""
        began, entry = time.perf_counter(), known.entry
        runner, freed = self._runners.pop(known.served), entry.weights + entry.kv().total
        with suppress(Exception):  # what cannot be kept is read again
            runner.memory.park_all()
        known.programs = tuple(runner.library.first_calls()) or known.programs
        entry.reset()
        self.forgotten(known)
        runner.close()
        known.served.model.close()
        let_go()
        self._metrics.models_evicted += 1
        took = time.perf_counter() - began
        self._events.tell(ModelEvicted(entry.name, freed, took))
        self.log.add(entry.name, "weights", reason, freed, took)

    def evict_idle(self, reason: str, but: Entry | None = None) -> None:
        """Evict everything that nobody uses."""
        self._look(time.monotonic())
        for entry in [entry for entry in self.pool.entries if entry is not but and entry.idle]:
            self.evict(self._of(entry), reason)
        for runner in self._runners.values():
            runner.memory.evict_idle()

    def free(self, missing: int, entry: Entry) -> None:
        """A running model needs more: idle ones go, if so many bytes come free by that."""
        now = time.monotonic()
        self._look(now)
        for victim in self.pool.to_free(missing, entry.home, now, but=entry) or ():
            self.evict(self._of(victim), f"room for conversations of {entry.name}")

    def shrink(self, reason: str = "a smaller budget") -> None:
        """Something is larger than it was, or the budget smaller: what is too much goes, as far as nobody uses it."""
        self._look(time.monotonic())
        for home in {entry.home for entry in self.pool.entries}:
            excess = self.pool.used(home) - self.pool.budget(home)
            for runner in self._runners.values():
                if excess > 0 and runner.device.placement == home:
                    excess -= runner.memory.give_up(excess)
            idle = [entry for entry in self.pool.at(home) if entry.idle]
            for entry in sorted(idle, key=lambda e: e.last_used):
                if self.pool.used(home) > self.pool.budget(home):
                    self.evict(self._of(entry), reason)

    def leave(self, known: Known) -> None:
        """A model is not known any more."""
        self.known.pop(known.served, None)
        self.pool.entries.remove(known.entry)
        known.entry.reset()
        known.shelf.clear()

    def squeeze_in(self, entry: Entry) -> None:
        """Room for a model whose weights are there already: now, or never.

        Raises:
            DeviceMemoryError: what can go now is not enough.
        """
        now = time.monotonic()
        self._look(now)
        decision = self.pool.can_load(entry, now)
        if not isinstance(decision, Grant) or not self._make_room(Demand(entry, now), decision):
            missing = entry.need + self.pool.used(entry.home) - self.pool.budget(entry.home)
            raise self.too_little(f"The model {entry.name!r}", missing)
        self.pool.entries.append(entry)
        self.pool.reserve(entry)

    def abandon(self, entry: Entry) -> None:
        """A model that was to be loaded for the first time will not be."""
        entry.reset()
        if entry in self.pool.entries:
            self.pool.entries.remove(entry)
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
        for known in self.known.values():
            known.shelf.clear()
            known.entry.reset()
        self.known.clear()
        self.pool.entries.clear()
        self._board.take_down()

    def publish(self) -> None:
        """Have other threads see what conversations take now."""
        for known in self.known.values():
            known.entry.seen_kv, known.entry.seen_host_kv = known.entry.kv().total, known.shelf.nbytes
            known.entry.seen_read_s = known.shelf.read.seconds(1) or 0.0
        self._board.show(self.statuses())

    def rest(self) -> None:
        """Leave nothing over the budget before the owner thread rests, and show other processes what is there."""
        self._look(time.monotonic())
        homes = {entry.home for entry in self.pool.entries}
        if any(self.pool.used(home) > self.pool.budget(home) for home in homes):
            self.shrink(_GREW)  # when it was found, all that could go may have been in use
            self.publish()
        self._board.show(self.statuses())

    def statuses(self) -> tuple[ModelStatus, ...]:
        """All models that are known. Any thread may ask."""
        now = time.monotonic()
        return tuple(status_of(entry, now) for entry in list(self.pool.entries))

    def too_little(self, what: str, missing: int) -> DeviceMemoryError:
        """The error of who gets no memory."""
        self.publish()
        statuses = self.statuses()
        return DeviceMemoryError(
            f"{what} needs {show_bytes(missing)} more than there is. In memory: {who_holds_what(statuses)}. Unload or "
            "unpin a model, take a smaller one, or allow more: configure(memory_budget=...).",
            tuple(str(status) for status in statuses if status.state is not State.ABSENT),
        )

    def _look(self, now: float) -> bool:
        """Who uses what: requests that run, dispatches in flight. Gives whether programs need more than they did."""
        self._note_running(now)
        grew = False
        for known in self.known.values():
            runner = self._runners.get(known.served)
            if runner is not None and runner.library.workspace > known.entry.workspace:
                known.entry.workspace, grew = runner.library.workspace, True
        return grew

    def _note_running(self, now: float) -> None:
        requests = {*self._scheduler.running, *(request for flight in self._flights for request in flight.requests)}
        found = [self.known[request.model].entry for request in requests if request.model in self.known]
        self.pool.note_running(found, now)

    def _of(self, entry: Entry) -> Known:
        return next(known for known in self.known.values() if known.entry is entry)

    def _is_waited_for(self, known: Known) -> bool:
        return any(request.model is known.served for request in self._scheduler.waiting)

    def _make_room(self, demand: Demand, grant: Grant) -> bool:
        """Do what was granted. False: it was not enough after all."""
        entry = demand.entry
        for victim in grant.evict:
            self.evict(self._of(victim), f"room for {entry.name}")
        left = grant.idle_kv
        for runner in list(self._runners.values()):
            if left > 0 and runner.device.placement == entry.home:
                left -= runner.memory.give_up(left)
        return entry.need + self.pool.used(entry.home) <= self.pool.budget(entry.home)

    def _granted(self, known: Known, found: Future[None]) -> None:
        """Load a model whose turn it is; give up one that will not come."""
        if found.cancelled():
            self._coming.pop(known).cancel()
        elif isinstance(error := found.exception(), Exception):
            self.failed(known, error)
        else:
            self.fetch(known)

    def _refuse(self, demand: Demand, decision: Never) -> None:
        error = self.too_little(f"The model {demand.entry.name!r}", decision.missing)
        demand.granted.set_exception(again(error))
