"""The engine: models to serve, requests to carry out, a report of what it cost. Any thread may call it."""

from __future__ import annotations

import dataclasses
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeAlias

import jax

from langchain_gemma_jax.engine import metrics as counting
from langchain_gemma_jax.engine.again import again
from langchain_gemma_jax.engine.checks import check_place, checked_prompt, checked_sampling, seconds, tokens
from langchain_gemma_jax.engine.collecting import collected_later
from langchain_gemma_jax.engine.constraints import Constraints
from langchain_gemma_jax.engine.device import Device
from langchain_gemma_jax.engine.eviction import Policy
from langchain_gemma_jax.engine.generation import Generation
from langchain_gemma_jax.engine.grammar.nodes import Grammar
from langchain_gemma_jax.engine.guards import Guard
from langchain_gemma_jax.engine.libraries import Libraries
from langchain_gemma_jax.engine.library import Library
from langchain_gemma_jax.engine.memory import Memory
from langchain_gemma_jax.engine.metrics import Metrics, Report
from langchain_gemma_jax.engine.options import Sampling
from langchain_gemma_jax.engine.owner import Owner
from langchain_gemma_jax.engine.programs import Shape
from langchain_gemma_jax.engine.request import Request
from langchain_gemma_jax.engine.runner import Runner
from langchain_gemma_jax.engine.served import Served, drafts_pay, kv_budget, ladders_for, loop_steps, stop_ids
from langchain_gemma_jax.engine.settings import Settings
from langchain_gemma_jax.engine.speculate import Lookup
from langchain_gemma_jax.engine.warmup import Warmup, first_answer, needed, warm
from langchain_gemma_jax.errors import BusyError, ClosedError, ForkedError, InputError
from langchain_gemma_jax.models.config import ModelConfig
from langchain_gemma_jax.models.load import Plan
from langchain_gemma_jax.models.load import load as load_model
from langchain_gemma_jax.models.model import Model
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.tokenizer import StreamDecoder

_LoadKey: TypeAlias = tuple[str, str | None, str | None]  # where, dtype, revision


class Loader(Protocol):
    """How a model is loaded: ``load_model``, unless a test says otherwise."""

    def __call__(
        self,
        source: str | os.PathLike[str],
        *,
        dtype: str | None,
        revision: str | None,
        planned: Callable[[Plan], None],
    ) -> Model: ...


class Engine:
    """Serves models to every thread and event loop of a process. Get it with ``engine()``.

    served = engine().load("google/gemma-3-1b-it")
    generation = engine().submit(served, prompt_ids, Sampling(max_tokens=64))
    for piece in generation:
        print(piece.text, end="")
    """

    def __init__(self, settings: Settings, loader: Loader = load_model) -> None:
        self.settings = settings
        self._loader = loader
        self._process = os.getpid()
        self._metrics = Metrics()
        self._lock = threading.Lock()
        self._models: dict[Served, Runner] = {}
        self._loads: dict[_LoadKey, Future[Served]] = {}
        self._numbers = 0
        rows = settings.ladders.rows if settings.ladders is not None else ladders_for(settings, 2**20, "cpu").rows
        self._owner = Owner(rows[-1], self._metrics)
        self._libraries = Libraries(self._owner.background)
        self._owner.programs = self._libraries.all

    # Models.

    def load(self, source: str | os.PathLike[str], *, dtype: str | None = None, revision: str | None = None) -> Served:
        """A model by folder or Hub id, loaded once however many threads ask; the arguments are ``load_model``'s.

        If loading fails, everybody who waits for it gets the error, and the next call tries again.
        """
        if not isinstance(source, str | os.PathLike):
            raise InputError(f"expected a folder or a model's id on the Hugging Face Hub, found {source!r}.")
        folder = os.path.expanduser(source)  # noqa: PTH111  which never raises
        place = os.path.abspath(folder) if os.path.exists(folder) else str(source)  # noqa: PTH100, PTH110
        key = (place, dtype, revision)
        while True:
            self._check_usable()
            mine: Future[Served] = Future()
            with self._lock:
                load = self._loads.setdefault(key, mine)
            if load is mine:
                with collected_later(), self._owner.inside_xla():
                    return self._load(mine, key, source)
            if (error := load.exception()) is None:
                return load.result()
            if isinstance(error, Exception):
                raise again(error)
            # Whoever was loading was interrupted, by Ctrl-C perhaps. That concerns nobody else: try it here.

    def _load(self, mine: Future[Served], key: _LoadKey, source: str | os.PathLike[str]) -> Served:
        """Load it, for everybody who waits for that."""
        _, dtype, revision = key
        expected: list[Library] = []
        try:
            model = self._loader(source, dtype=dtype, revision=revision, planned=partial(self._expect, expected))
            try:
                served = self.serve(model)
            except BaseException:
                model.close()  # nobody else has it
                raise
        except BaseException as error:
            with self._lock:
                if self._loads.get(key) is mine:
                    del self._loads[key]
            # One of their own: this one's traceback goes on growing in this thread.
            mine.set_exception(again(error) if isinstance(error, Exception) else error)
            raise
        mine.set_result(served)
        return served

    def _expect(self, expected: list[Library], plan: Plan) -> None:
        """A model will be served: have the programs fetched that it will need first, while its weights are read."""
        shape = self._shape(plan.config, plan.recipe, plan.tokenizer.vocab_size, plan.device)
        expected.append(self._library(shape, plan.device, plan.name))  # kept until it is served
        expected[-1].soon(expected[-1].opening())

    def serve(self, model: Model) -> Served:
        """A model that is loaded already. Whoever loaded it closes it, after ``unload``."""
        self._check_usable()
        if not isinstance(model, Model):
            raise InputError(f"expected a model, from load(), found {type(model).__name__}.")
        known = self._known(model)
        return self._owner.call(lambda: self._serve(model)) if known is None else known

    def _serve(self, model: Model) -> Served:
        """On the owner thread, where there is no race for the same model."""
        if (known := self._known(model)) is not None:
            return known
        if model.closed:
            raise ClosedError(f"The model {model.name!r} was closed. Load it again.")
        self._numbers += 1
        context = min(self.settings.max_context or model.config.max_context, model.config.max_context)
        served = Served(model, self._numbers, context, stop_ids(model))
        runner = self._runner(served)
        with self._lock:
            self._models[served] = runner
        return served

    def _known(self, model: Model) -> Served | None:
        with self._lock:
            return next((served for served in self._models if served.model is model), None)

    def unload(self, served: Served) -> None:
        """Forget a model: its conversations and programs at once, its weights when nobody refers to them.

        Raises:
            InputError: requests for it are running or waiting.
        """
        self._runner_of(served)

        def forget() -> None:
            if any(r.model == served for r in [*self._owner.scheduler.running, *self._owner.scheduler.waiting]):
                raise InputError(f"{served!r} is in use. Let its requests end, or cancel them, before it is unloaded.")
            with self._lock:
                self._models.pop(served, None)
                self._loads = {k: f for k, f in self._loads.items() if not (f.done() and f.result() is served)}
            if (runner := self._owner.runners.pop(served, None)) is not None:
                runner.close()
            self._owner.count_kv()

        self._owner.call(forget)

    # Requests.

    def submit(
        self,
        served: Served,
        prompt: Sequence[int],
        sampling: Sampling | None = None,
        *,
        scope: str = "",
        system: int = 0,
        timeout: float | None = None,
    ) -> Generation:
        """Have a model continue a prompt. Returns at once; read the ``Generation`` for what comes of it.

        Args:
            served: the model, from ``load`` or ``serve``.
            prompt: token ids, the begin of text included.
            sampling: how tokens are picked and when it ends. Greedy by default, until the model ends its turn.
            scope: conversations of different scopes share nothing, not even how long something takes: a tenant's name.
            system: how many of the first tokens are a system prompt. They stay in memory longest.
            timeout: seconds until ``DeadlineError``, counted from now.

        Raises:
            InputError: an argument is not possible. ContextLengthError, SchemaError: prompt or grammar are too long.
            BusyError: too many requests wait. ClosedError: the engine, or the model, was closed.
        """
        runner = self._runner_of(served)
        if served.model.closed:
            raise ClosedError(f"The model {served.name!r} was closed. Unload it, and load it again.")
        vocabulary = served.model.config.vocab_size
        sampling = checked_sampling(sampling, vocabulary)
        ids = checked_prompt(prompt, vocabulary, served.max_context)
        check_place(scope, system, len(ids))
        stops = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else served.stop_ids)
        constraint, banned = runner.constraints.begin(sampling, stops, len(ids), served.max_context)
        request = Request(
            model=served,
            prompt=ids,
            sampling=sampling,
            seed=secrets.randbits(64) if sampling.seed is None else sampling.seed,
            decoder=StreamDecoder(served.model.tokenizer),
            stop_ids=stops,
            constraint=constraint,
            banned=banned,
            max_context=served.max_context,
            scope=scope,
            system=system,
            deadline=None if timeout is None else time.monotonic() + seconds(timeout),
            marks={system} if system else set(),
        )
        if runner.drafts and sampling.drafts:
            request.lookup = Lookup(limit=runner.ladders.draft)
            request.lookup.extend(ids)
        generation = Generation(request)
        if not self._owner.offer(request, self.settings.max_waiting):
            raise BusyError(
                f"{self.settings.max_waiting} requests wait already. Try again when some are done, or let more wait: "
                "configure(max_waiting=...)."
            )
        return generation

    # The whole.

    def reconfigure(self, settings: Settings) -> None:
        """Take on new settings, those that a running engine can.

        Raises:
            InputError: another one was changed.
        """
        changed = [f.name for f in dataclasses.fields(settings) if getattr(settings, f.name) != self._setting(f.name)]
        if fixed := [name for name in changed if name not in Settings.CHANGEABLE]:
            raise InputError(
                f"configure: {', '.join(fixed)} cannot be changed while the engine is running. Configure before its "
                "first use, or close it first: engine().close()."
            )
        self.settings = settings

    def _setting(self, name: str) -> object:
        return getattr(self.settings, name)

    def warmup(
        self,
        model: Served | str | os.PathLike[str],
        *,
        max_context: int | None = None,
        progress: bool | None = None,
    ) -> Warmup:
        """Compile every program that conversations of up to ``max_context`` tokens can need, all by default.

            print(engine().warmup("google/gemma-3-1b-it", max_context=8192))

        Several at once, beside the requests that run. What was compiled is kept on the disk, so that
        the next process finds it. ``progress`` says whether to draw a bar: by default, if standard
        error is a terminal.
        """
        served = model if isinstance(model, Served) else self.load(model)
        runner = self._runner_of(served)
        limit = served.max_context if max_context is None else min(tokens(max_context), served.max_context)
        keys = needed(runner.device.bound, runner.ladders, limit, drafts=runner.drafts)
        for key in keys:
            runner.device.expect(key)
        opening = first_answer(runner.ladders)
        return warm(runner.library, self._owner.background, keys, opening, name=served.name, progress=progress)

    def prepare(self, served: Served, grammar: Grammar | None = None) -> None:
        """Make now what the first request with a grammar needs: a second, with Python's lock, for a large vocabulary.

        Raises:
            SchemaError: the grammar is too large, or too ambiguous.
        """
        self._runner_of(served).constraints.prepare(grammar)

    def report(self) -> Report:
        """What was done so far, and what it cost."""
        owner, view = self._owner, self._owner.kv
        with self._lock:
            runners = list(self._models.values())
        found = counting.snapshot(self._metrics)
        return Report(
            **found,  # type: ignore[arg-type]
            running=len(owner.scheduler.running),
            waiting=owner.queued,
            programs=sum(runner.programs_seen for runner in runners),
            program_bound=sum(runner.bound for runner in runners),
            compiles=owner.compiles.compiles,
            compile_s=owner.compiles.seconds,
            cache_hits=self._libraries.tally.hits,
            cache_misses=self._libraries.tally.misses,
            cache_saved_s=self._libraries.tally.seconds_saved,
            kv_bytes=view.total,
            kv_budget=max((runner.memory.policy.budget for runner in runners), default=0),
            kv_bytes_by_scope=dict(view.by_scope),
        )

    def close(self, timeout: float | None = None) -> bool:
        """End the engine: its requests get ``ClosedError``, its conversations are freed. Models stay loaded.

        Gives whether the thread has ended within ``timeout`` seconds. May be called twice.
        """
        if os.getpid() != self._process:
            return True  # it never lived here
        ended = self._owner.close(timeout)
        with self._lock:
            self._models.clear()
            self._loads.clear()
        return ended

    @property
    def alive(self) -> bool:
        """Whether it can take requests."""
        return os.getpid() == self._process and self._owner.thread.is_alive() and not self._owner.closing

    def _shape(self, config: ModelConfig, recipe: Recipe, vocabulary: int, device: jax.Device) -> Shape:
        """What the programs of a model are traced with."""
        context = min(self.settings.max_context or config.max_context, config.max_context)
        steps = loop_steps(self.settings, device.platform)
        return Shape(config, recipe, min(vocabulary, config.vocab_size), context, steps)

    def _library(self, shape: Shape, device: jax.Device, name: str) -> Library:
        return self._libraries.of(shape, device, name)

    def _runner(self, served: Served) -> Runner:
        """On the owner thread: everything that belongs to a model on its device."""
        model, settings = served.model, self.settings
        where = model.device
        ladders = ladders_for(settings, served.max_context, where.platform)
        shape = self._shape(model.config, model.recipe, model.tokenizer.vocab_size, where)
        guard = Guard("recompile", settings.guards, self._metrics.guard_trips)
        window = min((layer.window for layer in model.config.layers if layer.window is not None), default=None)
        device = Device(where, self._metrics, guard, ladders.program_keys(window))
        policy = Policy(kv_budget(settings, where), settings.scope_share, max_snapshots=settings.max_snapshots)
        runners = self._owner.runners
        memory = Memory(
            shape,
            self._library(shape, where, model.name),
            device,
            ladders,
            policy,
            self._metrics,
            # This must not refer to the runner: in a circle of references, weights stay until the next collection.
            lambda: [other.memory for model, other in runners.items() if model is not served],
        )
        drafts = drafts_pay(settings, model.recipe)
        constraints = Constraints(model.tokenizer, model.config.vocab_size)
        runner = Runner(model.params, shape, ladders, device, memory, self._metrics, constraints, drafts=drafts)
        runners[served] = runner
        return runner

    def _runner_of(self, served: Served) -> Runner:
        self._check_usable()
        found: object = served
        with self._lock:
            if not isinstance(found, Served) or (runner := self._models.get(found)) is None:
                raise InputError(f"{found!r} is not served by this engine. Use what its load() or serve() gave.")
        return runner

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise ForkedError(
                "This process was forked from one whose engine was running, and JAX does not survive that. Start "
                'processes by spawning: multiprocessing.get_context("spawn").'
            )
        if not self.alive:
            raise ClosedError("This engine was closed. engine() starts a new one.")
