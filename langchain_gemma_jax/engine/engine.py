"""The engine: models to serve, requests to carry out, a report of what it cost. Any thread may call it."""

from __future__ import annotations

import dataclasses
import os
import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import jax

from langchain_gemma_jax.engine import metrics as counting
from langchain_gemma_jax.engine.device import Device
from langchain_gemma_jax.engine.eviction import Policy
from langchain_gemma_jax.engine.generation import Generation
from langchain_gemma_jax.engine.guards import Guard
from langchain_gemma_jax.engine.memory import Memory
from langchain_gemma_jax.engine.metrics import Metrics, Report
from langchain_gemma_jax.engine.options import Sampling
from langchain_gemma_jax.engine.owner import Owner
from langchain_gemma_jax.engine.prefix import token_ids
from langchain_gemma_jax.engine.programs import Programs, Shape
from langchain_gemma_jax.engine.request import Request
from langchain_gemma_jax.engine.runner import Runner
from langchain_gemma_jax.engine.served import Served, drafts_pay, kv_budget, ladders_for, loop_steps, stop_ids
from langchain_gemma_jax.engine.settings import Settings
from langchain_gemma_jax.engine.speculate import Lookup
from langchain_gemma_jax.engine.warmup import warm
from langchain_gemma_jax.errors import BusyError, ClosedError, ContextLengthError, ForkedError, InputError
from langchain_gemma_jax.models.load import load as load_model
from langchain_gemma_jax.models.model import Model
from langchain_gemma_jax.models.tokenizer import StreamDecoder


class Loader(Protocol):
    """How a model is loaded: ``load_model``, unless a test says otherwise."""

    def __call__(self, source: str | os.PathLike[str], *, dtype: str | None, revision: str | None) -> Model: ...


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
        self._loads: dict[tuple[str, str | None, str | None], Future[Served]] = {}
        self._numbers = 0
        rows = settings.ladders.rows if settings.ladders is not None else ladders_for(settings, 2**20, "cpu").rows
        self._owner = Owner(rows[-1], self._metrics)

    # Models.

    def load(self, source: str | os.PathLike[str], *, dtype: str | None = None, revision: str | None = None) -> Served:
        """A model by folder or Hub id, loaded once however many threads ask; the arguments are ``load_model``'s.

        If loading fails, everybody who waits for it gets the error, and the next call tries again.
        """
        self._check_usable()
        place = str(Path(source).expanduser().absolute()) if os.path.exists(source) else str(source)  # noqa: PTH110
        key = (place, dtype, revision)
        with self._lock:
            known = self._loads.get(key)
            mine: Future[Served] = Future()
            if known is None:
                self._loads[key] = mine
        if known is not None:
            return known.result()
        try:
            served = self.serve(self._loader(source, dtype=dtype, revision=revision))
        except BaseException as error:
            with self._lock:
                del self._loads[key]
            mine.set_exception(error)
            raise
        mine.set_result(served)
        return served

    def serve(self, model: Model) -> Served:
        """A model that is loaded already. Whoever loaded it closes it, after ``unload``."""
        self._check_usable()
        if model.closed:
            raise ClosedError(f"The model {model.name!r} was closed. Load it again.")
        with self._lock:
            if (known := next((served for served in self._models if served.model is model), None)) is not None:
                return known
            self._numbers += 1
            number = self._numbers
        limit = self.settings.max_context or model.config.max_context
        served = Served(model, number, min(limit, model.config.max_context), stop_ids(model))
        runner = self._owner.call(lambda: self._runner(served))
        with self._lock:
            self._models[served] = runner
        return served

    def unload(self, served: Served) -> None:
        """Forget a model: its conversations and programs at once, its weights when nobody refers to them.

        Raises:
            InputError: requests for it are running or waiting.
        """
        runner = self._runner_of(served)

        def forget() -> None:
            if any(r.model == served for r in [*self._owner.scheduler.running, *self._owner.scheduler.waiting]):
                raise InputError(f"{served!r} is in use. Let its requests end, or cancel them, before it is unloaded.")
            runner.close()
            del self._owner.runners[served]

        self._owner.call(forget)
        with self._lock:
            del self._models[served]
            self._loads = {k: f for k, f in self._loads.items() if not (f.done() and f.result() is served)}

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
            InputError: an argument is not possible; ``ContextLengthError``: the prompt is too long.
            BusyError: too many requests wait.
        """
        runner = self._runner_of(served)
        sampling = sampling or Sampling()
        vocabulary = served.model.config.vocab_size
        try:
            ids = token_ids(prompt)
        except (TypeError, OverflowError) as error:
            raise InputError(f"prompt: expected token ids from 0 to {vocabulary - 1}, found {error}.") from error
        if not len(ids):
            raise InputError("prompt: expected one token at least, found none. A text begins with bos_id.")
        if min(ids) < 0 or max(ids) >= vocabulary:
            wrong = next(token for token in ids if not 0 <= token < vocabulary)
            raise InputError(f"prompt: expected token ids from 0 to {vocabulary - 1}, found {wrong}.")
        if len(ids) >= served.max_context:
            raise ContextLengthError(len(ids), served.max_context - 1)
        _check_place(scope, system, len(ids))
        request = Request(
            model=served,
            prompt=ids,
            sampling=sampling,
            seed=secrets.randbits(64) if sampling.seed is None else sampling.seed,
            decoder=StreamDecoder(served.model.tokenizer),
            stop_ids=frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else served.stop_ids),
            max_context=served.max_context,
            scope=scope,
            system=system,
            deadline=None if timeout is None else time.monotonic() + _seconds(timeout),
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
                f"configure: {', '.join(fixed)} cannot be changed while the engine is running. Configure before its first "
                "use, or close it first: engine().close()."
            )
        self.settings = settings

    def _setting(self, name: str) -> object:
        return getattr(self.settings, name)

    def warmup(self, served: Served, *, max_context: int | None = None) -> None:
        """Compile every program that conversations of up to ``max_context`` tokens can need, all by default."""
        runner = self._runner_of(served)
        limit = served.max_context if max_context is None else min(max_context, served.max_context)
        for one in warm(runner, limit):
            self._owner.call(one)  # one at a time, so that requests get their turn in between

    def report(self) -> Report:
        """What was done so far, and what it cost."""
        owner, view = self._owner, self._owner.kv
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

    def _runner(self, served: Served) -> Runner:
        """On the owner thread: everything that belongs to a model on its device."""
        model, settings = served.model, self.settings
        where = model.device
        ladders = ladders_for(settings, served.max_context, where.platform)
        steps = loop_steps(settings, where.platform)
        vocabulary = min(model.tokenizer.vocab_size, model.config.vocab_size)
        shape = Shape(model.config, model.recipe, vocabulary, served.max_context, steps)
        guard = Guard("recompile", settings.guards, self._metrics.guard_trips)
        window = min((layer.window for layer in model.config.layers if layer.window is not None), default=None)
        device = Device(where, self._metrics, guard, ladders.program_keys(window))
        policy = Policy(kv_budget(settings, where), settings.scope_share, max_snapshots=settings.max_snapshots)
        runners = self._owner.runners
        memory = Memory(
            shape,
            Programs(shape, where),
            device,
            ladders,
            policy,
            self._metrics,
            lambda: sum(other.memory.nbytes() for other in runners.values() if other is not runner),
        )
        drafts = drafts_pay(settings, model.recipe)
        runner = Runner(model.params, shape, ladders, device, memory, self._metrics, drafts=drafts)
        runners[served] = runner
        return runner

    def _runner_of(self, served: Served) -> Runner:
        self._check_usable()
        with self._lock:
            if (runner := self._models.get(served)) is None:
                raise InputError(f"{served!r} is not served by this engine. Use what its load() or serve() gave.")
        return runner

    def _check_usable(self) -> None:
        if os.getpid() != self._process:
            raise ForkedError(
                "This process was forked from one whose engine was running, and JAX does not survive that. Start "
                'processes by spawning: multiprocessing.get_context("spawn").'
            )
        if not self.alive:
            raise ClosedError("This engine was closed. engine() starts a new one.")


def _check_place(scope: object, system: object, tokens: int) -> None:
    if isinstance(system, bool) or not isinstance(system, int) or not 0 <= system <= tokens:
        raise InputError(f"system: expected how many of the {tokens} tokens it is, found {system!r}.")
    if not isinstance(scope, str):
        raise InputError(f"scope: expected a string, found {scope!r}.")


def _seconds(timeout: float) -> float:
    number: object = timeout
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 2**31:
        raise InputError(f"timeout: expected seconds from 0 to 2**31, or None, found {timeout!r}.")
    return float(timeout)
