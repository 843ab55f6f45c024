"""``ModelEvictor``: carries out the ledger's decisions. It evicts models, parks conversations and grants room.

For the owner thread, between two dispatches. Demands for room wait in one queue: first come, first served.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Hashable
from concurrent.futures import Future
from contextlib import suppress

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.events import Events, ModelEvicted, ModelLoaded
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.host.gc_pause import free_deleted_arrays
from langchain_gemma_jax.engine.residency.eviction_log import EvictionLog
from langchain_gemma_jax.engine.residency.known_models import KnownModel, KnownModels
from langchain_gemma_jax.engine.residency.ledger import Grant, Ledger, Never
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State
from langchain_gemma_jax.engine.residency.model_status import KvView, ModelStatus, status_of, who_holds_what
from langchain_gemma_jax.engine.residency.room_queue import RoomQueue
from langchain_gemma_jax.engine.residency.status_file import EngineActivity, StatusFile
from langchain_gemma_jax.engine.steps.in_flight import InFlight
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import DeviceMemoryError

SAVE_SECONDS = 0.5  # of an engine's last second, to write conversations to disk
_GREW = "programs need more than was expected"


class ModelEvictor:
    """The memory that the models of an engine share: it loads into it, evicts from it and grants room in it."""

    def __init__(
        self,
        models: KnownModels,
        ledger: Ledger,
        queue: RoomQueue,
        scheduler: Scheduler,
        flights: deque[InFlight],
        metrics: Metrics,
        events: Events,
    ) -> None:
        self._events = events
        self.ledger, self.queue = ledger, queue
        self.log = EvictionLog()
        self.kv = KvView()  # as last published
        self._status_file, self._activity = StatusFile(), EngineActivity(scheduler, metrics, events)
        self._models, self._scheduler, self._flights, self._metrics = models, scheduler, flights, metrics

    # Demands for models and for room.

    def line_up(self, entry: LedgerEntry) -> Future[None]:
        """Queue for room for a new model. When it is granted, the bytes are reserved."""
        self.ledger.entries.append(entry)
        return self.queue.line_up(entry)

    def arrived(self, known: KnownModel, runner: Runner, seconds: float) -> None:
        """Register a loaded model and wake its waiters."""
        self._models.runners[known.served] = runner
        self.ledger.settle(known.entry, runner.kv_store.held, time.monotonic(), seconds)
        self._metrics.loads += 1
        self._metrics.load_s += seconds
        self._events.publish(ModelLoaded(known.entry.name, seconds))
        self.queue.arrived(known)

    def may_change(self, model: Hashable) -> bool:
        """Return True if other models' memory may be freed without a request's end: they are held, or just loaded."""
        now = time.monotonic()
        others = (known.entry for key, known in self._models.known.items() if key is not model)
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

    def may_run(self, known: KnownModel, now: float) -> bool:
        """Return True if a new request may begin on a model: not if another one has waited too long for its memory.

        If the model is idle, and yet was not evicted, the other model does not wait for it.
        """
        entry = known.entry
        may_go = entry.returns and not entry.pinned and not entry.holds
        return not (may_go and entry.running and self.queue.blocked(now))

    # Every round of the loop.

    def round(self) -> None:
        """Update the uses of models, evict those whose time is over, and grant room."""
        now = time.monotonic()
        self._save(now)
        if self._look(now):
            self.shrink(_GREW)
        for entry in self.ledger.expired(now):
            idle = "unused" if entry.leaving else f"unused for {entry.keep_alive:g} s"
            self.evict(self._models.with_entry(entry), "asked to go" if entry.leaving else idle)
        while (demand := self.queue.first()) is not None:
            decision = self.ledger.can_load(demand.entry, now)
            if isinstance(decision, Never):
                self.queue.refuse(demand, self.too_little(f"The model {demand.entry.name!r}", decision.missing))
            elif not isinstance(decision, Grant) or not self._make_room(demand.entry, decision):
                return
            else:
                self.ledger.reserve(demand.entry)
                self.queue.grant(demand)

    def patience(self) -> float | None:
        """Return the seconds until something is due without new requests; None: nothing is."""
        now = time.monotonic()
        self._look(now)
        due = (self.ledger.next_change(now), self._save(now))
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _save(self, now: float) -> float | None:
        """Begin to write idle conversations and past answers to disk. Return the seconds until more may be due."""
        waits = [runner.kv_store.save_idle(now) for runner in self._models.runners.values()]
        waits += [known.drafts.save_idle(now) for known in self._models.known.values()]
        return min((seconds for seconds in waits if seconds is not None), default=None)

    def evict(self, known: KnownModel, reason: str) -> None:
        """Evict an unused model from the device: its conversations, programs and weights."""
        began, entry = time.perf_counter(), known.entry
        runner, freed = self._models.runners.pop(known.served), entry.weights + entry.extra_bytes + entry.kv().total
        with suppress(Exception):  # conversations that cannot be kept are read again
            runner.kv_store.park_all()
        known.programs = tuple(runner.library.first_calls()) or known.programs
        entry.reset()
        runner.close()
        known.served.model.close()
        free_deleted_arrays()
        self._metrics.models_evicted += 1
        took = time.perf_counter() - began
        self._events.publish(ModelEvicted(entry.name, freed, took))
        self.log.add(entry.name, "weights", reason, freed, took)

    def evict_idle(self, reason: str, home: Hashable | None, but: LedgerEntry | None = None) -> None:
        """Evict everything unused on a placement's devices. None: on any device."""
        self._look(time.monotonic())
        models = self._models
        for entry in list(self.ledger.entries if home is None else self.ledger.at(home)):
            if entry is not but and entry.idle:
                self.evict(models.with_entry(entry), reason)
        for runner in list(models.runners.values()) if home is None else models.running_at(home):
            runner.kv_store.evict_idle()

    def free(self, missing: int, entry: LedgerEntry) -> None:
        """Evict idle models for a running one that needs this number of bytes, if that frees as many."""
        now = time.monotonic()
        self._look(now)
        for victim in self.ledger.to_free(missing, entry.home, now, but=entry) or ():
            self.evict(self._models.with_entry(victim), f"room for conversations of {entry.name}")

    def shrink(self, reason: str = "a smaller budget") -> None:
        """Evict what exceeds the budget, as far as it is unused: the budget has become smaller, or a model larger."""
        self._look(time.monotonic())
        for home in {entry.home for entry in self.ledger.entries}:
            excess = self.ledger.used(home) - self.ledger.budget(home)
            for runner in self._models.running_at(home):
                if excess > 0:
                    excess -= runner.kv_store.give_up(excess)
            idle = [entry for entry in self.ledger.at(home) if entry.idle]
            for entry in sorted(idle, key=lambda e: e.last_used):
                if self.ledger.used(home) > self.ledger.budget(home):
                    self.evict(self._models.with_entry(entry), reason)

    def leave(self, known: KnownModel) -> None:
        """Drop a model's ledger entry and host copies."""
        self._models.known.pop(known.served, None)
        self.ledger.entries.remove(known.entry)
        known.entry.reset()
        known.host_store.clear()

    def squeeze_in(self, entry: LedgerEntry) -> None:
        """Reserve room at once for a model whose weights are in memory already.

        Raises:
            DeviceMemoryError: evicting what can be evicted now is not enough.
        """
        now = time.monotonic()
        self._look(now)
        decision = self.ledger.can_load(entry, now)
        if not isinstance(decision, Grant) or not self._make_room(entry, decision):
            missing = entry.need + self.ledger.used(entry.home) - self.ledger.budget(entry.home)
            raise self.too_little(f"The model {entry.name!r}", missing)
        self.ledger.entries.append(entry)
        self.ledger.reserve(entry)

    def abandon(self, entry: LedgerEntry) -> None:
        """Cancel a first load and its reservation."""
        entry.reset()
        if entry in self.ledger.entries:
            self.ledger.entries.remove(entry)
        self.queue.abandon(entry)

    def end(self) -> None:
        """End: write what is kept on disk while there is time, drop all models, and end all waiting."""
        until = time.monotonic() + SAVE_SECONDS
        for runner in self._models.runners.values():
            with suppress(Exception):  # conversations that cannot be written are read again
                runner.kv_store.save_all(until)
            with suppress(Exception):
                runner.close()
        self._models.runners.clear()
        self.queue.end()
        for known in self._models.known.values():
            known.drafts.save_all()
            known.host_store.clear()
            known.entry.reset()
        self._models.known.clear()
        self.ledger.entries.clear()
        self._status_file.take_down()
        self.kv = KvView()

    def publish(self) -> None:
        """Publish the bytes of conversations to other threads."""
        runners, sizes = list(self._models.runners.values()), Counter[str]()
        for runner in runners:
            runner.kv_store.held.changed = False
            sizes.update(runner.kv_store.index.nbytes_by_scope())
        self.kv = KvView(sum(runner.kv_store.held.nbytes() for runner in runners), tuple(sorted(sizes.items())))
        for known in self._models.known.values():
            known.entry.seen_kv, known.entry.seen_host_kv = known.entry.kv().total, known.host_store.nbytes
            known.entry.seen_read_s = known.host_store.read.seconds(1) or 0.0
        self._status_file.show(self.statuses(), self._activity.now)

    def publish_changes(self) -> None:
        """Publish the bytes of conversations, if any have changed since the last time."""
        if any(runner.kv_store.held.changed for runner in self._models.runners.values()):
            self.publish()
        elif self._status_file.is_due:  # a long answer changes no bytes, and its progress is shown all the same
            self._status_file.show(self.statuses(), self._activity.now)

    def rest(self) -> None:
        """Evict what exceeds the budget before the owner thread waits, and update the status file."""
        self._look(time.monotonic())
        homes = {entry.home for entry in self.ledger.entries}
        if any(self.ledger.used(home) > self.ledger.budget(home) for home in homes):
            self.shrink(_GREW)  # when the excess was noticed, everything may have been in use
            self.publish()
        self._status_file.show(self.statuses(), self._activity.now)

    def statuses(self) -> tuple[ModelStatus, ...]:
        """Return the statuses of all models. Any thread may call it."""
        now = time.monotonic()
        return tuple(status_of(entry, now) for entry in list(self.ledger.entries))

    def too_little(self, what: str, missing: int) -> DeviceMemoryError:
        """Return the error for a demand for memory that cannot be met."""
        self.publish()
        statuses = self.statuses()
        return DeviceMemoryError(
            f"{what} needs {show_bytes(missing)} more than there is. In memory: {who_holds_what(statuses)}. Unload or "
            "unpin a model, take a smaller one, or allow more: configure(memory_budget=...).",
            tuple(str(status) for status in statuses if status.state is not State.ABSENT),
        )

    def _look(self, now: float) -> bool:
        """Update the uses of models by requests and dispatches in flight. Return True if workspaces have grown."""
        self._note_running(now)
        grew = False
        for known in self._models.known.values():
            runner = self._models.runners.get(known.served)
            if runner is not None and runner.library.workspace > known.entry.workspace:
                known.entry.workspace, grew = runner.library.workspace, True
        return grew

    def _note_running(self, now: float) -> None:
        requests = {*self._scheduler.running, *(request for flight in self._flights for request in flight.requests)}
        known = self._models.known
        found = [known[request.asked.model].entry for request in requests if request.asked.model in known]
        self.ledger.note_running(found, now)

    def _make_room(self, entry: LedgerEntry, grant: Grant) -> bool:
        """Evict what the grant says. Return False if that was not enough."""
        for victim in grant.evict:
            self.evict(self._models.with_entry(victim), f"room for {entry.name}")
        left = grant.idle_kv
        for runner in self._models.running_at(entry.home):
            if left > 0:
                left -= runner.kv_store.give_up(left)
        return entry.need + self.ledger.used(entry.home) <= self.ledger.budget(entry.home)
