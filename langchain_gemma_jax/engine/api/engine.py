"""The engine: models to serve, requests to carry out, a report of what it cost. Any thread may call it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar, Unpack, cast

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.api.live_view import live_view
from langchain_gemma_jax.engine.api.model_api import ModelApi
from langchain_gemma_jax.engine.api.model_loading import WAIT_SECONDS, ModelLoader, until_when
from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.api.request_making import RequestMaker
from langchain_gemma_jax.engine.base.events import Events, Finished, Refused, StepRouted, Submitted, Tripped
from langchain_gemma_jax.engine.base.guards import Asking, Guards
from langchain_gemma_jax.engine.base.metrics import Metrics, ModelTally, RouteTally
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import CurrentSettings, Settings
from langchain_gemma_jax.engine.device.other_hosts import OtherHosts
from langchain_gemma_jax.engine.executables.warmup import Warmup
from langchain_gemma_jax.engine.requests.clock import Clock, Steps, await_for, wait_for
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.residency.device_use import device_uses
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import BusyError, InputError
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.kernels.library import in_words
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad, LoadOptions
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from langchain_gemma_jax.private.process_memory import ProcessMemory

T = TypeVar("T")


class Engine:
    """Serves models to every thread and event loop of a process. Get it with ``engine()``.

    served = engine().load("google/gemma-3-1b-it")
    generation = engine().submit(served, prompt_ids, Sampling(max_tokens=64))
    for piece in generation:
        print(piece.text, end="")
    """

    def __init__(self, settings: Settings, files: ModelFiles | None = None, others: OtherHosts | None = None) -> None:
        self._settings, self._process = CurrentSettings(settings), os.getpid()
        self._metrics, self.routes, self.events = Metrics(), RouteTally(), Events()
        self.events.subscribe(Finished, self._metrics.finished)
        self.events.subscribe(StepRouted, self.routes.add)
        self.tally, self.guards = ModelTally(self.events), Guards(lambda: self.settings, self.events)
        self._loader = ModelLoader(
            self._settings, files or ModelFiles(), self._metrics, self.events, self.guards, others
        )
        self._models, self._requests, self._owner = ModelApi(self._loader), RequestMaker(), self._loader.owner
        self.embed, self.adapter = self._models.embed, self._models.adapter  # vectors of texts; adapters from files
        kept = self._loader.prefixes
        self.prefix_offers = None if kept is None else kept.offers  # to other replicas
        self.live = partial(live_view, self._owner, self._metrics)  # what it does now, for people who watch
        self._companions: dict[Callable[[], object], object] = {}

    @property
    def settings(self) -> Settings:
        """The settings of ``configure`` that are in force now."""
        return self._settings.now

    @property
    def alive(self) -> bool:
        """True if the engine can take requests."""
        return self._owner.alive

    def refuse_waiting(self) -> None:
        """Refuse a thread that would wait for this engine for ever, by a ``ReentrantCallError``."""
        self._owner.refuse_waiting()

    # Models.

    def load(
        self,
        source: str | os.PathLike[str],
        *,
        timeout: float | None = WAIT_SECONDS,
        **how: Unpack[LoadOptions],
    ) -> Served:
        """Load a model by folder or Hub id, once for all threads. ``how`` is as for ``load_model``.

        It is in memory when this returns, and stays until the memory is needed for another model. If others use the
        memory, this waits for at most ``timeout`` seconds, downloads included; None: without a limit. By default it
        waits five minutes for room in memory, and as long as a download takes. If no caller waits any longer, a
        download stops. If loading fails, all callers get the error.

        Raises:
            DeviceMemoryError: it does not fit next to what is never evicted. DeadlineError: the time was up.
        """
        clock = Clock(timeout)
        return self._wait_here(self.arriving(source, HowToLoad.of(dict(how)), clock), clock)

    async def aload(
        self,
        source: str | os.PathLike[str],
        *,
        timeout: float | None = WAIT_SECONDS,  # noqa: ASYNC109  as ``load`` has it
        **how: Unpack[LoadOptions],
    ) -> Served:
        """Load a model as ``load`` does, without blocking the event loop. Canceling the task ends the wait."""
        clock = Clock(timeout)
        return await await_for(self.arriving(source, HowToLoad.of(dict(how)), clock), clock)

    def arriving(
        self, source: str | os.PathLike[str], how: HowToLoad, clock: Clock, asks: Asking | None = None
    ) -> Steps[Served]:
        """Load a model in steps, for callers that wait in another way. ``asks``: the application and its guards."""
        asked_by = None if asks is None else self.guards.asked_by(asks.app, asks.guards)
        return self._models.arriving(source, how, clock, asked_by)

    def serve(self, model: Model) -> Served:
        """Serve a model that you loaded. It is never evicted; close it yourself, after ``unload``.

        Raises:
            DeviceMemoryError: it does not fit, even after everything idle was evicted.
        """
        return self._models.serve(model)

    def unload(self, served: Served) -> None:
        """Forget a model at once: its conversations, its programs and, if the engine loaded it, its weights.

        Raises:
            InputError: requests for it are running or waiting, or it is held.
        """
        self._models.unload(served)

    def evict(self, served: Served) -> None:
        """Unload a model as soon as it is idle. It comes back when it is used again.

        Raises:
            InputError: the engine has not loaded it, and cannot load it again.
        """
        self._models.evict(served)

    def pin(self, served: Served, *, pinned: bool = True) -> None:
        """Keep a model in memory until ``pin(served, pinned=False)``."""
        self._models.pin(served, pinned=pinned)

    def keep_alive(self, served: Served, seconds: float | None) -> None:
        """Set how long an unused model stays in memory. None: until the memory is needed for another one."""
        self._models.keep_alive(served, seconds)

    @contextmanager
    def hold(self, served: Served, *, timeout: float | None = WAIT_SECONDS) -> Iterator[Served]:
        """Keep a model in memory during a ``with`` block.

            with engine().hold(served): ...

        Raises:
            DeadlineError: other models kept the memory busy. DeviceMemoryError: it does not fit at all.
        """
        with self._models.hold(served, timeout=timeout):
            yield served

    def status(self, source: str | os.PathLike[str], **how: Unpack[LoadOptions]) -> ModelStatus | None:
        """Return what ``models()`` says of one that was loaded with these arguments; None if none was."""
        return self._models.status(source, HowToLoad.of(dict(how)))

    def models(self) -> tuple[ModelStatus, ...]:
        """Return the status of every model that was loaded or served: where it is, its bytes, its users."""
        return self._models.models()

    # Requests.

    def submit(
        self,
        served: Served,
        prompt: Sequence[int] | Prompt,
        sampling: Sampling | None = None,
        *,
        scope: str = "",
        system: int = 0,
        app: str = "",
        guards: object = None,
        timeout: float | None = None,
        ahead: bool = False,
    ) -> Generation:
        """Continue a prompt with a model. Returns at once; the ``Generation`` delivers the text.

        Args:
            served: the model, from ``load`` or ``serve``. If it was evicted, the request waits until it is back.
            prompt: token ids, the begin of text included; or a ``Prompt`` of spans, perhaps under an ``adapter``.
            sampling: how tokens are picked and when it ends. Greedy by default, until the model ends its turn.
            scope: conversations of different scopes share nothing, not even how long something takes: a tenant's name.
            system: how many of the first tokens are a system prompt. They stay in memory longest.
            app: the application, by which the records count. Empty: that of the ``guard`` around this call.
            guards: the action of guards that this request trips. None: as of that ``guard``, or as configured.
            timeout: seconds until ``DeadlineError``, counted from now.
            ahead: only read the prompt, while no other request runs, and give it up for one.

        Raises:
            InputError: an argument is not possible. ContextLengthError, SchemaError: prompt or grammar are too long.
            BusyError: too many requests wait. ClosedError: the engine, or the model, was closed.
        """
        deadline = until_when(timeout)
        asked_by, known = self.guards.asked_by(app, guards), self._models.known(served)
        request = self._requests.make(
            known, prompt, sampling, scope=scope, system=system, asked_by=asked_by, deadline=deadline, ahead=ahead
        )
        generation, asked = Generation(request, self._owner.refuse_waiting, self._owner.standstills), request.asked
        self.events.publish(Submitted(asked.number, served.name, scope, asked.app, asked.submitted_at))
        if not self._owner.offer(request, most := self.settings.max_waiting):
            self.events.publish(Refused(asked.number, served.name, scope, asked.app))
            raise BusyError(
                f"{most} requests wait already. Try again when some are done, or let more wait: "
                "configure(max_waiting=...)."
            )
        return generation

    # The whole.

    def reconfigure(self, settings: Settings) -> None:
        """Take on new settings, those that a running engine can.

        Raises:
            InputError: another one was changed.
        """
        now = self.settings
        changed = [f.name for f in dataclasses.fields(settings) if getattr(settings, f.name) != getattr(now, f.name)]
        if fixed := [name for name in changed if name not in Settings.CHANGEABLE]:
            raise InputError(
                f"configure: {', '.join(fixed)} cannot be changed while the engine is running. Configure before its "
                "first use, or close it first: engine().close()."
            )
        self._settings.now = settings
        if "memory_budget" in changed:
            self._owner.call(self._owner.evictor.shrink)

    def warmup(
        self,
        model: Served | str | os.PathLike[str],
        *,
        max_context: int | None = None,
        progress: bool | None = None,
        timeout: float | None = None,
    ) -> Warmup:
        """Compile every program for conversations of up to ``max_context`` tokens; by default, of any length.

            print(engine().warmup("google/gemma-3-1b-it", max_context=8192))

        Requests run meanwhile. Programs are kept on the disk, where the next process finds them. ``progress`` draws a
        bar; by default, if standard error is a terminal. After ``timeout`` seconds it stops, and keeps what it has.

        Raises:
            DeadlineError: the time was up.
        """
        clock = Clock(timeout)
        if not isinstance(model, Served):
            model = self._wait_here(self.arriving(model, HowToLoad(), clock), clock)
        return self._models.warmup(model, max_context, clock, progress=progress)

    def prepare(self, served: Served, grammar: Grammar | None = None) -> None:
        """Prepare a model for grammars, which otherwise costs its first request with one a second or more.

        Raises:
            SchemaError: the grammar is too large, or too ambiguous.
        """
        self._requests.prepare(self._models.known(served), grammar)

    def on_finished(self, reader: Callable[[Finished], None]) -> Callable[[], None]:
        """Call a reader with the record of each request that ends. Returns what ends that; see ``base/events.py``."""
        return self.events.subscribe(Finished, reader)

    def on_trip(self, reader: Callable[[Tripped], None]) -> Callable[[], None]:
        """Call a reader with each trip of a guard that is not off. Returns what ends that; see ``base/events.py``."""
        return self.events.subscribe(Tripped, reader)

    def companion(self, make: Callable[[], T]) -> T:
        """Return an object kept for as long as this engine runs. The first call with ``make`` makes it.

        ``close`` drops it. A closed engine keeps nothing: there, each call makes a new one.
        """
        if not self.alive:
            return make()
        return cast("T", self._companions.setdefault(make, make()))

    def report(self) -> Report:
        """Return a report of the work done so far, and of its cost."""
        ancestry.refuse_forked()
        owner, view = self._owner, self._owner.evictor.kv
        runners, models = list(owner.models.runners.values()), self.models()
        process = ProcessMemory.now()
        return Report(
            resident_bytes=process.resident,
            private_bytes=process.private,
            **self._metrics.reported(),
            **self.tally.reported(),
            **self.routes.reported(),
            **self.guards.trips.reported(),
            **self._loader.libraries.tally.reported(),
            running=len(owner.scheduler.running),
            waiting=owner.queued,
            oldest_wait_s=owner.oldest_wait_s,
            programs=sum(runner.programs_seen for runner in runners),
            program_bound=sum(runner.bound for runner in runners),
            compiles=owner.compiles.compiles,
            compile_s=owner.compiles.seconds,
            kv_bytes=view.total,
            kv_budget=max((runner.kv_store.policy.budget for runner in runners), default=0),
            kv_bytes_by_scope=dict(view.by_scope),
            devices=device_uses(list(owner.evictor.ledger.entries), self._loader.budgets.limits),
            live_arrays=len(jax.live_arrays()) if runners else 0,  # without a model, this would be JAX's first use
            models=models,
            host_kv_bytes=sum(model.host_kv for model in models),
            eviction_log=owner.evictor.log.latest(),
            kernels=in_words(),
            **self._loader.prefix_counts(),
        )

    def close(self, timeout: float | None = None) -> bool:
        """End the engine: its requests get ``ClosedError``, its conversations are freed. Models stay loaded.

        Gives whether its threads have ended within ``timeout`` seconds. May be called twice.
        """
        if os.getpid() != self._process:
            return True  # it never lived here
        until = until_when(timeout)
        self._loader.loads.close(0.0)
        ended = self._owner.close(timeout) & self._loader.close(until)
        self._models.forget()
        self._companions.clear()
        return ended

    def _wait_here(self, steps: Steps[Served], clock: Clock) -> Served:
        """Wait in this thread, which then cannot be asked to wait for itself: by a signal handler, say."""
        with self._owner.waiting.here():
            return wait_for(steps, clock)
