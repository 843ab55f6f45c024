"""How models come into memory: room is waited for, weights are read, programs fetched meanwhile, a runner made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.api.loads_under_way import Load, Loads
from langchain_gemma_jax.engine.api.runner_factory import Surroundings
from langchain_gemma_jax.engine.base.checks import seconds as checked_timeout
from langchain_gemma_jax.engine.base.events import Events, Finished, StepRouted
from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.metrics import Metrics, ModelTally, RouteTally
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.device.transfers import out_of_memory
from langchain_gemma_jax.engine.executables.background import Background, cores
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.gc_pause import collected_later
from langchain_gemma_jax.engine.loop.owner import Owner
from langchain_gemma_jax.engine.requests.clock import ForRoom, one_is_done
from langchain_gemma_jax.engine.requests.model_grammars import Constraints
from langchain_gemma_jax.engine.residency.ledger_entry import Entry, State
from langchain_gemma_jax.engine.residency.memory_estimate import first_workspace, smallest_conversation, weights_bytes
from langchain_gemma_jax.engine.residency.model_record import Known
from langchain_gemma_jax.engine.residency.model_status import who_holds_what
from langchain_gemma_jax.engine.residency.served import Served, drafts_pay, ladders_for, loop_steps, stop_ids
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import ClosedError, DeadlineError, DeviceMemoryError, InputError
from langchain_gemma_jax.models.architecture import Architecture
from langchain_gemma_jax.models.checkpoint.place import READERS
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.load import Plan
from langchain_gemma_jax.models.load import load as load_model
from langchain_gemma_jax.models.model import Model
from langchain_gemma_jax.models.placement import Placement
from langchain_gemma_jax.models.recipes.recipe import Recipe
from langchain_gemma_jax.models.stopping import Stop, StoppedError

LoadKey: TypeAlias = tuple[str, str | None, str | None]
"""Where a model is, its dtype, its revision."""

WAIT_SECONDS = ForRoom(300.0)  # that a caller waits for room for a model, unless it says otherwise
WAITING = "waiting for room"
REREADS = 8  # models that are read again at the same time: there is room for each of them


class Loader(Protocol):
    """How a model is loaded: ``load_model``, unless a test says otherwise. ``like`` is given the second time."""

    def __call__(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None = None,
        revision: str | None = None,
        planned: Callable[[Plan], None] | None = None,
        like: Model | None = None,
        stop: Stop | None = None,
    ) -> Model: ...


class Arrivals:
    """The part of an engine that brings models into memory."""

    def __init__(self, settings: Settings, loader: Loader = load_model) -> None:
        self.settings = settings
        self._loader = loader
        self._process = os.getpid()
        self._metrics, self.routes, self.events = Metrics(), RouteTally(), Events()
        self.events.subscribe(Finished, self._metrics.finished)
        self.events.subscribe(StepRouted, self.routes.add)
        self.tally = ModelTally(self.events)
        self.guards = Guards(lambda: self.settings, self.events)
        # The owner thread and callers share these without a lock: see mailbox.py. Each change is one atomic step.
        self._models: dict[Served, Runner] = {}  # in memory
        self._known: dict[Served, Known] = {}
        self._loaded: dict[LoadKey, Served] = {}  # since when they may have been evicted
        self._loads: Loads[Served] = Loads()
        self._rereads = Background(REREADS, name="gemma-jax-load")
        self._numbers = 0
        rows = settings.ladders.rows if settings.ladders is not None else ladders_for(settings, 2**20, "cpu").rows
        self._owner = Owner(rows[-1], self._metrics, self.events)
        self._libraries = Libraries(self._owner.background, self.events)
        self._owner.programs = self._libraries.all
        self._surroundings = Surroundings(self._owner, self._metrics, self.guards, lambda: self.settings)
        keeper = self._owner.keeper
        keeper.forgotten = self._forget_runner
        keeper.fetch = self._load_again_soon

    # The first time.

    def _load_first(self, source: str | os.PathLike[str], key: LoadKey, load: Load[Served]) -> Served:
        """Load a model that was not known so far."""
        _, dtype, revision = key
        began, planned = time.monotonic(), _Planned(load=load)
        load.parts.now("fetching and checking its files")
        found = partial(self._loader, source, dtype=dtype, revision=revision, stop=load.stop)

        def plan(found: Plan) -> None:
            planned.files = found.files
            if planned.entry is None:
                load.parts.now(WAITING)
                self._reserve(planned, found, time.monotonic() + WAIT_SECONDS)
                self._loads.go_on(load)
                load.parts.now("reading its weights")
                planned.library = library = self._library(found)
                library.soon(library.opening())

        try:
            model = self._read(partial(found, planned=plan), planned)
            seconds = time.monotonic() - began - planned.waited
            try:
                return self._owner.call(lambda: self._serve(model, planned, seconds))
            except BaseException:
                model.close()  # nobody else has it
                raise
        except BaseException:
            with suppress(ClosedError):
                self._owner.call(planned.abandon(self._owner.keeper.abandon))
            raise

    def _reserve(self, planned: _Planned, plan: Plan, until: float) -> None:
        """Wait until there is room for what will be read; longer than until then, if somebody has the patience."""
        shape = self._shape(plan.architecture, plan.recipe, plan.tokenizer.vocab_size, plan.placement)
        weights = weights_bytes(shape, plan.placement)
        entry = planned.entry = self._entry(plan.name, plan.placement, shape, weights, returns=True)
        began, load = time.monotonic(), planned.load
        granted = self._owner.call(lambda: self._owner.keeper.line_up(entry))
        try:
            _until_done(granted, load, until)
        except TimeoutError:
            raise self._too_late(f"the model {plan.name!r}", began) from None
        granted.result()
        planned.waited = time.monotonic() - began

    def _serve(self, model: Model, planned: _Planned | None = None, seconds: float = 0.0) -> Served:
        """Return what a model is served as, and serve it if it is not yet.

        Runs on the owner thread, where there is no race for the same model.
        """
        if (served := self._served(model)) is not None:
            return served
        if model.closed:
            raise ClosedError(f"The model {model.name!r} was closed. Load it again.")
        settings, keeper, where = self.settings, self._owner.keeper, model.placement
        shape = self._shape(model.architecture, model.recipe, model.tokenizer.vocab_size, where)
        entry = None if planned is None else planned.entry
        if entry is None:
            entry = self._entry(model.name, where, shape, where.nbytes(model.params), returns=False)
            keeper.squeeze_in(entry)
        self._numbers += 1
        served = Served(model, self._numbers, shape.max_context, stop_ids(model))
        known = Known(
            served,
            shape,
            ladders_for(settings, shape.max_context, where.platform),
            Constraints(model.tokenizer, model.architecture.vocab_size),
            drafts_pay(settings, model.recipe),
            entry,
            self._surroundings.shelf(served, where),
            files=None if planned is None else planned.files,
        )
        keeper.known[served] = known
        self._known[served] = known
        self._arrived(known, seconds)
        return served

    # Each time.

    def _load_again_soon(self, known: Known) -> None:
        self._rereads.submit(partial(self._load_again, known))

    def _load_again(self, known: Known) -> None:
        """Load an evicted model again, now that there is room and somebody waits. Runs in a thread of its own."""
        model, keeper, began = known.served.model, self._owner.keeper, time.monotonic()
        planned = _Planned(entry=known.entry)

        def plan(found: Plan) -> None:
            planned.library = library = self._library(found)
            known.programs = known.programs or tuple(library.opening())
            if _cores_to_spare():
                library.soon(known.programs)
            if found.files != known.files:
                self._owner.call(known.shelf.clear)  # its conversations were read by other weights than these
                known.files = found.files

        folder = model.name if known.files is None else known.files.folder
        try:
            with collected_later():
                fresh = self._read(partial(self._loader, folder, planned=plan, like=model), planned)
            try:
                self._owner.call(lambda: self._reopen(known, fresh, time.monotonic() - began))
            except BaseException:
                fresh.close()
                raise
        except Exception as problem:  # noqa: BLE001  whatever it is, those who wait have to hear it
            with suppress(ClosedError):
                self._owner.call(partial(keeper.failed, known, problem))

    def _reopen(self, known: Known, fresh: Model, seconds: float) -> None:
        known.served.model.reopen(fresh)
        self._arrived(known, seconds)

    def _read(self, read: Callable[[], Model], planned: _Planned) -> Model:
        """Read weights. Should the memory be full against all reckoning, what is idle goes, and it is tried again."""
        try:
            return read()
        except Exception as error:
            if not _memory_is_full(error):
                raise
        self._owner.call(lambda: self._owner.keeper.evict_idle("the device's memory was full", but=planned.entry))
        try:
            return read()
        except Exception as error:
            if not _memory_is_full(error):
                raise
            statuses = self._owner.keeper.statuses()
            raise DeviceMemoryError(
                "The device's memory was full twice while a model was loaded, also after everything idle was evicted. "
                f"In memory: {who_holds_what(statuses)}. Others may use the device too: leave them room with "
                "configure(memory_budget=...), or take a smaller model.",
                tuple(str(status) for status in statuses if status.nbytes),
            ) from error

    def _bring_back(self, served: Served, load: Load[Served]) -> Served:
        """Have a model that was evicted in memory again, for those who wait for its load."""
        load.parts.now(WAITING)
        self._bring(served, time.monotonic() + WAIT_SECONDS, load)
        return served

    def _bring(self, served: Served, until: float | None, load: Load[Served] | None = None) -> None:
        """Have a model in memory, from which it may be evicted again."""
        known, began = self._known_of(served), time.monotonic()
        if known.entry.state is not State.RESIDENT:
            with self._owner.waiting.here():
                self._wait_for(known, until, began, load)

    def _wait_for(self, known: Known, until: float | None, began: float, load: Load[Served] | None) -> None:
        while known.entry.state is not State.RESIDENT:
            waits = [True]
            ask = partial(self._owner.keeper.want, known, lambda waits=waits: bool(waits))  # type: ignore[misc]
            try:
                coming = self._owner.call(ask, left(until) if load is None else None)
                _until_done(coming, load, until)
                coming.result()
            except TimeoutError:
                raise self._too_late(repr(known.served), began) from None
            except CancelledError:
                self._check_alive()  # the one who had asked for it gave up: ask again
            except StoppedError:
                raise
            except Exception as error:  # noqa: BLE001
                raise again(error) from None
            finally:
                waits.clear()

    def _arrived(self, known: Known, seconds: float) -> None:
        """Make a model's runner, now that its weights are there. Runs on the owner thread."""
        served, where = known.served, known.served.model.placement
        library = self._libraries.of(known.shape, where, served.name)
        library.soon(known.programs)
        runner = self._surroundings.runner(known, library)
        self._models[served] = runner
        self._owner.keeper.arrived(known, runner, seconds)

    def _library(self, plan: Plan) -> Library:
        """A model will be served: where its programs will be, which can be fetched while its weights are read."""
        shape = self._shape(plan.architecture, plan.recipe, plan.tokenizer.vocab_size, plan.placement)
        return self._libraries.of(shape, plan.placement, plan.name)

    def _entry(self, name: str, home: Placement, shape: Shape, weights: int, *, returns: bool) -> Entry:
        """A model's place in the books: what it will take."""
        ladders = ladders_for(self.settings, shape.max_context, home.platform)
        return Entry(
            name,
            home,
            weights=weights,
            floor=smallest_conversation(shape, ladders),
            workspace=first_workspace(shape, ladders),
            returns=returns,
            keep_alive=self.settings.keep_alive if returns else None,
        )

    def _shape(self, kind: Architecture, recipe: Recipe, vocabulary: int, where: Placement) -> Shape:
        """What the programs of a model are traced with."""
        context = min(self.settings.max_context or kind.max_context, kind.max_context)
        steps = loop_steps(self.settings, where.platform)
        return Shape(kind, recipe, min(vocabulary, kind.vocab_size), context, steps)

    def _served(self, model: Model) -> Served | None:
        return next((served for served in list(self._known) if served.model is model), None)

    def _forget_runner(self, known: Known) -> None:
        self._models.pop(known.served, None)

    def _known_of(self, served: Served) -> Known:
        self._check_usable()
        found: object = served
        if not isinstance(found, Served) or (known := self._known.get(found)) is None:
            raise InputError(f"{found!r} is not served by this engine. Use what its load() or serve() gave.")
        return known

    def _too_late(self, what: str, began: float) -> DeadlineError:
        statuses = self._owner.keeper.statuses()
        return DeadlineError(
            f"There was no room for {what} within {time.monotonic() - began:.1f} s. In memory: "
            f"{who_holds_what(statuses)}. Allow more time, or more memory: configure(memory_budget=...)."
        )

    def _check_usable(self) -> None:
        self._check_alive()
        self._owner.refuse_waiting()

    def _check_alive(self) -> None:
        ancestry.refuse_forked()
        if not self.alive:
            raise ClosedError("This engine was closed. engine() starts a new one.")

    def refuse_waiting(self) -> None:
        """Refuse a thread that may not wait for this engine.

        Raises:
            ReentrantCallError: that would be for ever.
        """
        self._owner.refuse_waiting()

    @property
    def alive(self) -> bool:
        """Whether the engine can take requests."""
        return os.getpid() == self._process and not self._owner.thread.ended and not self._owner.closing


class _Planned:
    """What is known of a model while it is loaded."""

    def __init__(self, entry: Entry | None = None, load: Load[Served] | None = None) -> None:
        self.entry, self.load = entry, load
        self.files: Unchanged | None = None
        self.library: Library | None = None  # kept until it is served
        self.waited = 0.0  # seconds, for room

    def abandon(self, abandon: Callable[[Entry], None]) -> Callable[[], None]:
        """Return what abandons the entry of a model that will not come, if it has one."""
        entry = self.entry
        return (lambda: None) if entry is None else partial(abandon, entry)


def until_when(timeout: float | None) -> float | None:
    """When so many seconds will have passed. None: never."""
    return None if timeout is None else time.monotonic() + checked_timeout(timeout)


def _until_done(future: Future[None], load: Load[Served] | None, until: float | None) -> None:
    """Wait for it: until then, or, if any of those who wait for a load has the patience, longer.

    Raises:
        TimeoutError: time is up. StoppedError: nobody waits any more.
    """
    both = (future,) if load is None else (future, load.stop.asked)
    while not one_is_done(both, left(until)):
        if load is None or not load.patient:
            raise TimeoutError
        until = None  # patience does not end again
    if load is not None and not future.done():
        load.stop.check()


def left(until: float | None) -> float | None:
    """Seconds until then, 0 at least."""
    return None if until is None else max(0.0, until - time.monotonic())


def _cores_to_spare() -> bool:
    """Whether programs can be fetched while weights are read again: from the page cache, which keeps its readers busy.

    Weights that are read for the first time come from the disk, and the readers wait for it.
    """
    return cores() > READERS


def _memory_is_full(error: Exception) -> bool:
    return out_of_memory(error) or isinstance(error, MemoryError)
