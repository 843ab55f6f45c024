"""Loading of models into memory: room is waited for, weights are read, programs fetched meanwhile, a runner made."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_gemma_jax.compile_cache.everywhere import nothing_kept
from langchain_gemma_jax.config import allocator_is_set, weights_folder
from langchain_gemma_jax.engine.api.loads_under_way import Load, Loads
from langchain_gemma_jax.engine.api.model_estimate import entry_of, entry_of_guest, fit_of, shape_of
from langchain_gemma_jax.engine.api.runner_factory import RunnerFactory, prefix_store_of
from langchain_gemma_jax.engine.base.checks import checked_timeout
from langchain_gemma_jax.engine.base.draft_sources import MTP, checked_sources
from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.guards import Asking, Guards
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.base.settings import CurrentSettings
from langchain_gemma_jax.engine.device.device_access import out_of_memory
from langchain_gemma_jax.engine.device.other_hosts import LoadElsewhere, OtherHosts
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts
from langchain_gemma_jax.engine.executables.background import Background, cores
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.executables.warmup import first_answer
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.gc_pause import collected_later
from langchain_gemma_jax.engine.host.unused_accelerator import chosen_platforms, on_the_cpu
from langchain_gemma_jax.engine.loop.owner import Owner
from langchain_gemma_jax.engine.requests.clock import ForRoom, one_is_done
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.engine.residency.device_memory import DeviceBudgets
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, who_holds_what
from langchain_gemma_jax.engine.residency.served import Served, draft_sources, ladders_for, stop_ids
from langchain_gemma_jax.errors import ClosedError, DeadlineError, DeviceMemoryError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.drafters import OFF
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.loading.place import READERS
from langchain_gemma_jax.models.loading.plan_model import Devices, plan_model
from langchain_gemma_jax.models.loading.read import read, read_again
from langchain_gemma_jax.models.mapped.weight_files import WeightFiles
from langchain_gemma_jax.models.mesh.counts import Fit, checked_devices, checked_replicas
from langchain_gemma_jax.private.freed_memory import keep_less
from langchain_gemma_jax.stopping import StoppedError

WAIT_SECONDS = ForRoom(300.0)  # that a caller waits for room for a model, unless it says otherwise
WAITING = "waiting for room"
REREADS = 8  # models that are read again at the same time: there is room for each of them


class ModelLoader:
    """Brings the models of one engine into memory, the first time and again; and has the thread that runs them."""

    def __init__(
        self,
        settings: CurrentSettings,
        files: ModelFiles,
        metrics: Metrics,
        events: Events,
        guards: Guards,
        others: OtherHosts | None = None,
    ) -> None:
        if not allocator_is_set():
            keep_less()
        self._settings, self._files, self._others, self._guards = settings, files, others, guards
        self.loads: Loads[Served] = Loads()
        self.libraries = Libraries(events, others)
        self._rereads = Background(REREADS, name="gemma-jax-load")
        self.budgets = DeviceBudgets(settings)
        self._weight_files = WeightFiles(weights_folder()) if settings.now.map_weights else None
        self._numbers = 0
        self.prefixes = prefix_store_of(settings.now)  # before the owner thread, which has things written at its end
        own = settings.now.ladders
        rows = Ladders().rows if own is None else own.rows
        self.owner = Owner(rows[-1], metrics, events, self.libraries, self)
        self._models, self._evictor = self.owner.models, self.owner.evictor
        self._runner_factory = RunnerFactory(
            self._models, self._evictor, metrics, guards, settings, self._rereads, self.prefixes, others
        )

    # What the owner thread asks for.

    def budget(self, home: Hashable) -> int:
        """Bytes of each device of a place that models and their conversations may take together."""
        return self.budgets.of(home)

    def load_again(self, known: KnownModel) -> None:
        """Begin to load an evicted model again, now that there is room and a request waits."""
        self._rereads.submit(partial(self._load_again, known))

    @property
    def loads_run(self) -> bool:
        """True if a model is being loaded."""
        return self.loads.busy or self._rereads.busy

    def end_loads(self, until: float | None) -> bool:
        """Have what is being loaded end. Gives whether nothing is any more at that time."""
        ended = self.loads.close(left(until))
        return self._rereads.close(left(until)) and ended

    def prefix_counts(self) -> dict[str, Any]:
        """Return what was done with prefixes on the disk, by names in a ``Report``."""
        return {} if self.prefixes is None else dataclasses.asdict(self.prefixes.counts)

    # The first time.

    def load_first(
        self, source: str | os.PathLike[str], how: HowToLoad, load: Load[Served], replica: int | None = None
    ) -> Served:
        """Load a model that was not known so far, or another replica of one, for those who wait for its load."""
        began, coming = time.monotonic(), _Coming()
        load.parts.now("fetching and checking its files")
        try:
            with self._files.open(source, how, load.stop) as opened:
                plan = plan_model(opened, how, self._devices(how, replica))
                on_the_cpu.look(plan.placement.platform, chosen_platforms())
                coming.files = plan.files
                load.parts.now(WAITING)
                self._reserve(coming, load, plan, time.monotonic() + WAIT_SECONDS)
                self.loads.go_on(load)
                load.parts.now("reading its weights")
                coming.library = library = self._library(plan)
                library.soon(needed := library.first_needed())
                load.cold_cost = partial(library.cold_cost, needed or self._first_answer(plan))
                elsewhere = partial(self._load_elsewhere, plan, str(source), how)
                model = self._read(partial(read, opened, plan, weight_files=self._weight_files), elsewhere, coming)
            seconds = time.monotonic() - began - coming.waited
            try:
                return self.owner.call(lambda: self.serve(model, coming, seconds))
            except BaseException:
                model.close()  # it was never served
                raise
        except BaseException:
            if (entry := coming.entry) is not None:
                with suppress(ClosedError):
                    self.owner.call(lambda: self._evictor.abandon(entry))
            raise

    def placed(self, how: HowToLoad) -> HowToLoad:
        """Return how a model is loaded, with its devices and replicas: as a caller asks, or as is set."""
        now = self._settings.now
        devices = checked_devices(now.devices if how.devices is None else how.devices)
        replicas = checked_replicas(now.replicas if how.replicas is None else how.replicas)
        sources = checked_sources(now.drafts)
        drafter = how.drafter if sources is None or MTP in sources else OFF  # there it would guess nothing
        return dataclasses.replace(how, devices=None if devices == 1 else devices, replicas=replicas, drafter=drafter)

    def _devices(self, how: HowToLoad, replica: int | None) -> Devices:
        """Return where a model may be put. Replicas are on devices of this process alone."""
        if how.devices is None:
            return Devices(replica=replica or 0)
        among = None if self._others is None or replica is not None else self._others.devices
        return Devices(among=among, replica=replica or 0, measure=self._fits)

    def _load_elsewhere(self, plan: LoadPlan, source: str, how: HowToLoad) -> LoadElsewhere | None:
        """Have the other hosts that have a part of a model load theirs. None: this process has all of it."""
        if self._others is None or plan.placement.here:
            return None
        return self._others.load(plan, shape_of(self._settings.now, plan), source, how.to_dict())

    def _fits(self, plan: LoadPlan) -> Fit:
        """Return the bytes that a model needs in a place, and those that there are."""
        return fit_of(self._settings.now, plan, self.budget(plan.placement))

    def _reserve(self, coming: _Coming, load: Load[Served], plan: LoadPlan, until: float) -> None:
        """Wait until there is room for what will be read; longer than that, if a caller's timeout allows."""
        settings = self._settings.now
        entry = coming.entry = entry_of(settings, plan, shape_of(settings, plan))
        began = time.monotonic()
        granted = self.owner.call(lambda: self._evictor.line_up(entry))
        try:
            _until_done(granted, load, until)
        except TimeoutError:
            raise no_room(f"the model {plan.name!r}", began, self._evictor.statuses()) from None
        granted.result()
        coming.waited = time.monotonic() - began

    def serve(self, model: Model, coming: _Coming | None = None, seconds: float = 0.0) -> Served:
        """Return what a model is served as, and serve it if it is not yet.

        Runs on the owner thread, where there is no race for the same model.
        """
        if (served := self._models.served_as(model)) is not None:
            return served
        if model.closed:
            raise ClosedError(f"The model {model.name!r} was closed. Load it again.")
        settings, where = self._settings.now, model.placement
        shape = shape_of(settings, model)
        entry = None if coming is None else coming.entry
        if entry is None:
            entry = entry_of_guest(settings, model, shape)
            self._evictor.squeeze_in(entry)
        entry.not_mapped = model.not_mapped
        self._numbers += 1
        served = Served(model, self._numbers, shape.max_context, stop_ids(model))
        ladders = ladders_for(settings, shape, where.platform)
        known = KnownModel(
            served,
            shape,
            ladders,
            ModelGrammars(model.tokenizer, model.architecture.vocab_size),
            ModelDrafts(draft_sources(settings, model.recipe, drafter=model.drafter is not None), ladders.draft),
            entry,
            self._runner_factory.host_store(served, where),
            files=None if coming is None else coming.files,
        )
        self._models.known[served] = known
        self._arrived(known, seconds)
        return served

    # Each time.

    def bring_back(self, served: Served, load: Load[Served]) -> Served:
        """Have a model that was evicted in memory again, for those who wait for its load."""
        load.parts.now(WAITING)
        self.bring(served, time.monotonic() + WAIT_SECONDS, load)
        return served

    def bring(self, served: Served, until: float | None, load: Load[Served] | None = None) -> None:
        """Have a model in memory, from which it may be evicted again."""
        self.owner.check_usable()
        known, began = self._models.of(served), time.monotonic()
        if known.entry.state is not State.RESIDENT:
            with self.owner.waiting.here():
                self._wait_for(known, until, began, load)

    def close(self, until: float | None) -> bool:
        """Have what comes end. Gives whether the threads that read models have ended by then."""
        ended = self.end_loads(until)
        return (self.prefixes is None or self.prefixes.close(left(until))) and ended

    def _load_again(self, known: KnownModel) -> None:
        """Load an evicted model again, now that there is room and a request waits. Runs in a thread of its own."""
        model, began = known.served.model, time.monotonic()
        coming = _Coming(entry=known.entry)
        try:
            with collected_later(), self._files.open_again(model) as opened:
                plan = opened.planned_again(model)
                coming.library = library = self._library(plan)
                known.programs = known.programs or tuple(library.first_needed())
                if _cores_to_spare():
                    library.soon(known.programs)
                if plan.files != known.files:
                    # Its conversations were read, and its answers given, by other weights than these.
                    self.owner.call(known.host_store.clear)
                    self.owner.call(known.drafts.forget)
                    known.files = plan.files
                elsewhere = partial(self._load_again_elsewhere, plan, known)
                weights = partial(read_again, opened, plan, model, weight_files=self._weight_files)
                fresh = self._read(weights, elsewhere, coming)
            try:
                self.owner.call(lambda: self._reopen(known, fresh, time.monotonic() - began))
            except BaseException:
                fresh.close()
                raise
        except Exception as problem:  # noqa: BLE001  whatever it is, those who wait have to hear it
            with suppress(ClosedError):
                self.owner.call(partial(self._evictor.queue.failed, known, problem))

    def _load_again_elsewhere(self, plan: LoadPlan, known: KnownModel) -> LoadElsewhere | None:
        if self._others is None or plan.placement.here:
            return None
        return self._others.load_again(plan, known.shape, known.served.model)

    def _reopen(self, known: KnownModel, fresh: Model, seconds: float) -> None:
        known.served.model.reopen(fresh)
        known.entry.not_mapped = fresh.not_mapped
        self._arrived(known, seconds)

    def _read(self, read: Callable[[], Model], elsewhere: Callable[[], LoadElsewhere | None], coming: _Coming) -> Model:
        """Read weights. Should the memory be full against all reckoning, what is idle goes, and it is tried again."""
        try:
            return _read_by_all(read, elsewhere)
        except Exception as error:
            if not _memory_is_full(error):
                raise
        home = None if (entry := coming.entry) is None else entry.home
        self.owner.call(lambda: self._evictor.evict_idle("the device's memory was full", home, but=entry))
        try:
            return _read_by_all(read, elsewhere)
        except Exception as error:
            if not _memory_is_full(error):
                raise
            statuses = self._evictor.statuses()
            raise DeviceMemoryError(
                "The device's memory was full twice while a model was loaded, also after everything idle was evicted. "
                f"In memory: {who_holds_what(statuses)}. Others may use the device too: leave them room with "
                "configure(memory_budget=...), or take a smaller model.",
                tuple(str(status) for status in statuses if status.nbytes),
            ) from error

    def _wait_for(self, known: KnownModel, until: float | None, began: float, load: Load[Served] | None) -> None:
        while known.entry.state is not State.RESIDENT:
            waits = [True]
            ask = partial(self._evictor.queue.want, known, lambda waits=waits: bool(waits))  # type: ignore[misc]
            try:
                coming = self.owner.call(ask, left(until) if load is None else None)
                _until_done(coming, load, until)
                coming.result()
            except TimeoutError:
                raise no_room(repr(known.served), began, self._evictor.statuses()) from None
            except CancelledError:
                self.owner.check_alive()  # the one who had asked for it gave up: ask again
            except StoppedError:
                raise
            except Exception as error:  # noqa: BLE001
                raise again(error) from None
            finally:
                waits.clear()

    def _arrived(self, known: KnownModel, seconds: float) -> None:
        """Make a model's runner, now that its weights are there. Runs on the owner thread."""
        library = self.libraries.of(known.shape, known.served.model.placement, known.served.name)
        library.soon(known.programs)
        self._evictor.arrived(known, self._runner_factory.runner(known, library), seconds)

    def _first_answer(self, plan: LoadPlan) -> list[ProgramKey]:
        """Return the programs that a first answer of a model needs, if none was given here so far."""
        shape = shape_of(self._settings.now, plan)
        if shape.architecture.embedding_width is not None:
            return []
        return first_answer(ladders_for(self._settings.now, shape, plan.placement.platform))

    def late(self, model: str, load: Load[Served], asker: Asking) -> None:
        """Have the guards look at a call whose time was up while its model was loaded."""
        if load.cold_cost is not None:
            self._guards.too_late_to_load(model, asker, load.cold_cost())
        elif self.libraries.tally.costs.is_empty and nothing_kept():  # no device is asked: it may be starting
            self._guards.too_late_to_load(model, asker, None)

    def _library(self, plan: LoadPlan) -> Library:
        """A model will be served: where its programs will be, which can be fetched while its weights are read."""
        return self.libraries.of(shape_of(self._settings.now, plan), plan.placement, plan.name)


@dataclass
class _Coming:
    """A model that is being loaded."""

    entry: LedgerEntry | None = None
    files: Unchanged | None = None
    library: Library | None = None  # kept until it is served
    waited: float = 0.0  # seconds, for room


def _read_by_all(read: Callable[[], Model], begin_elsewhere: Callable[[], LoadElsewhere | None]) -> Model:
    """Read a model while the other hosts that have a part of it read theirs. All of them have it then, or none."""
    elsewhere, model = begin_elsewhere(), None
    try:
        model = read()
        if elsewhere is not None:
            elsewhere.finish(model)
    except BaseException:
        if elsewhere is not None:
            elsewhere.give_up()
        if model is not None:
            model.close()
        raise
    return model


def no_room(what: str, began: float, statuses: tuple[ModelStatus, ...]) -> DeadlineError:
    """The error of who waited for room in memory for too long."""
    return DeadlineError(
        f"There was no room for {what} within {time.monotonic() - began:.1f} s. In memory: "
        f"{who_holds_what(statuses)}. Allow more time, or more memory: configure(memory_budget=...)."
    )


def until_when(timeout: float | None) -> float | None:
    """Return the ``time.monotonic()`` at which ``timeout`` seconds will have passed. None: never."""
    return None if timeout is None else time.monotonic() + checked_timeout(timeout)


def left(until: float | None) -> float | None:
    """Seconds until then, 0 at least."""
    return None if until is None else max(0.0, until - time.monotonic())


def _until_done(future: Future[None], load: Load[Served] | None, until: float | None) -> None:
    """Wait for it: until then, or, if any of those who wait for a load has the patience, longer.

    Raises:
        TimeoutError: time is up. StoppedError: all callers have left.
    """
    while not future.done():
        both = (future,) if load is None else (future, load.left.asked)
        if one_is_done(both, left(until)):
            if load is not None and not future.done():
                load.left.check()  # a caller that came just now may have taken it back
        elif load is None or not load.patient:
            raise TimeoutError
        else:
            until = None  # patience does not end again


def _cores_to_spare() -> bool:
    """Return True if programs can be fetched while weights are read again.

    Then the weights come from the page cache, which keeps their readers busy. Weights that are read for the first time
    come from the disk, and the readers wait for it.
    """
    return cores() > READERS


def _memory_is_full(error: Exception) -> bool:
    return out_of_memory(error) or isinstance(error, MemoryError)
