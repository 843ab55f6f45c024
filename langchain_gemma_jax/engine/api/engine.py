"""The engine: models to serve, requests to carry out, a report of what it cost. Any thread may call it."""

from __future__ import annotations

import dataclasses
import os
import secrets
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.api.model_api import Residents
from langchain_gemma_jax.engine.api.model_loading import WAIT_SECONDS, Loader, left, until_when
from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.checks import check_place, checked_prompt, checked_sampling, tokens
from langchain_gemma_jax.engine.base.events import Finished, Refused, Submitted, Tripped
from langchain_gemma_jax.engine.base.guards import Policies, asking
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.executables.warmup import Warmup, first_answer, needed, warm
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.draft_lookup import Lookup
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import BusyError, ClosedError, InputError
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.models.load import load as load_model
from langchain_gemma_jax.models.tokenizer import StreamDecoder
from langchain_gemma_jax.reentry import Inside

T = TypeVar("T")


class Engine(Residents):
    """Serves models to every thread and event loop of a process. Get it with ``engine()``.

    served = engine().load("google/gemma-3-1b-it")
    generation = engine().submit(served, prompt_ids, Sampling(max_tokens=64))
    for piece in generation:
        print(piece.text, end="")
    """

    def __init__(self, settings: Settings, loader: Loader = load_model) -> None:
        super().__init__(settings, loader)
        self._grammars = Inside("it compiled a grammar")
        self._companions: dict[Callable[[], object], object] = {}

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
    ) -> Generation:
        """Have a model continue a prompt. Returns at once; read the ``Generation`` for what comes of it.

        Args:
            served: the model, from ``load`` or ``serve``. If it was evicted, the request waits until it is back.
            prompt: token ids, the begin of text included; or a ``Prompt`` of spans.
            sampling: how tokens are picked and when it ends. Greedy by default, until the model ends its turn.
            scope: conversations of different scopes share nothing, not even how long something takes: a tenant's name.
            system: how many of the first tokens are a system prompt. They stay in memory longest.
            app: the name of the application that asks, for the records of what happened. Empty: that of the ``guard``
                which this is called in, if any.
            guards: what guards do when this request trips them, as ``configure(guards=...)`` has it. None: as that of
                the ``guard`` which this is called in says, or as configured.
            timeout: seconds until ``DeadlineError``, counted from now.

        Raises:
            InputError: an argument is not possible. ContextLengthError, SchemaError: prompt or grammar are too long.
            BusyError: too many requests wait. ClosedError: the engine, or the model, was closed.
        """
        deadline = until_when(timeout)
        asks = asking.get()
        app, guards = app or asks.app, asks.guards if guards is None else guards
        if guards is not None:
            self._check_guards(guards)
        known = self._known_of(served)
        if known.files is None and served.model.closed:
            raise ClosedError(f"The model {served.name!r} was closed. Unload it, and load it again.")
        vocabulary = served.model.architecture.vocab_size
        sampling = checked_sampling(sampling, vocabulary)
        asked = prompt if isinstance(prompt, Prompt) else None
        ids = checked_prompt(prompt if asked is None else asked.ids, vocabulary, served.max_context)
        check_place(scope, system, len(ids))
        stops = frozenset(sampling.stop_ids) | (frozenset() if sampling.ignore_eos else served.stop_ids)
        with self._grammars.here():
            constraint, banned = known.constraints.begin(sampling, stops)
        request = Request(
            model=served,
            prompt=Prompt.of_tokens(ids) if asked is None else asked,
            sampling=sampling,
            seed=secrets.randbits(64) if sampling.seed is None else sampling.seed,
            decoder=StreamDecoder(served.model.tokenizer),
            stop_ids=stops,
            constraint=constraint,
            banned=banned,
            max_context=served.max_context,
            scope=scope,
            system=system,
            app=app,
            guards=guards,
            deadline=deadline,
            marks={system} if system else set(),
        )
        if known.drafts and known.ladders.draft > 0 and sampling.drafts:
            request.lookup = Lookup(limit=known.ladders.draft)
            request.lookup.extend(ids)
        generation = Generation(request, self._owner.refuse_waiting)
        self.events.tell(Submitted(request.number, served.name, scope, app, request.submitted_at))
        if not self._owner.offer(request, self.settings.max_waiting):
            self.events.tell(Refused(request.number, served.name, scope, app))
            raise BusyError(
                f"{self.settings.max_waiting} requests wait already. Try again when some are done, or let more wait: "
                "configure(max_waiting=...)."
            )
        return generation

    def _check_guards(self, guards: object) -> None:
        if "callback" in vars(Policies.of(guards)).values() and self.settings.on_trip is None:
            raise InputError('guards: expected a function for "callback" in configure(on_trip=...), found None.')

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
        if "memory_budget" in changed:
            self._owner.call(self._owner.keeper.shrink)

    def _setting(self, name: str) -> object:
        return getattr(self.settings, name)

    def warmup(
        self,
        model: Served | str | os.PathLike[str],
        *,
        max_context: int | None = None,
        progress: bool | None = None,
        timeout: float | None = None,
    ) -> Warmup:
        """Compile every program that conversations of up to ``max_context`` tokens can need, all by default.

            print(engine().warmup("google/gemma-3-1b-it", max_context=8192))

        Several at once, beside the requests that run. What was compiled is kept on the disk, so that
        the next process finds it. ``progress`` says whether to draw a bar: by default, if standard
        error is a terminal. ``timeout`` is for all of it, in seconds; what was compiled until then is kept.

        Raises:
            DeadlineError: the time was up.
        """
        clock = Clock(timeout)
        served = model if isinstance(model, Served) else self._wait_here(self.arriving(model, clock=clock), clock)
        with self.hold(served, timeout=WAIT_SECONDS if clock.left is None else clock.left):
            runner = self._models[served]
            limit = served.max_context if max_context is None else min(tokens(max_context), served.max_context)
            keys = needed(runner.device.bound, runner.ladders, limit, drafts=runner.drafts)
            for key in keys:
                runner.device.expect(key)
            opening = first_answer(runner.ladders)
            with self._owner.waiting.here():
                found = warm(
                    runner.library, self._owner.background, keys, opening, clock, name=served.name, progress=progress
                )
            runner.device.warmed = True
            return found

    def prepare(self, served: Served, grammar: Grammar | None = None) -> None:
        """Make now what the first request with a grammar needs: a second, with Python's lock, for a large vocabulary.

        Raises:
            SchemaError: the grammar is too large, or too ambiguous.
        """
        known = self._known_of(served)
        with self._grammars.here():
            known.constraints.prepare(grammar)

    def on_finished(self, reader: Callable[[Finished], None]) -> Callable[[], None]:
        """Call a reader with the record of each request that ends. Returns what ends that; see ``base/events.py``."""
        return self.events.subscribe(Finished, reader)

    def on_trip(self, reader: Callable[[Tripped], None]) -> Callable[[], None]:
        """Call a reader with each trip of a guard that is not off. Returns what ends that; see ``base/events.py``."""
        return self.events.subscribe(Tripped, reader)

    def companion(self, make: Callable[[], T]) -> T:
        """What a caller keeps for as long as this engine runs: made by the first who asks for it, gone with ``close``.

        A closed engine keeps nothing: there, everybody gets one of their own.
        """
        if not self.alive:
            return make()
        return cast("T", self._companions.setdefault(make, make()))

    def report(self) -> Report:
        """What was done so far, and what it cost."""
        ancestry.refuse_forked()
        owner, view = self._owner, self._owner.kv
        runners = list(self._models.values())
        middle, longest = self._metrics.first_token_seconds()
        return Report(
            **vars(self._metrics.copied()),
            guard_trips=dict(self.guards.trips.by_kind),
            trips_by_app=self.guards.trips.copied(),
            series=self._metrics.by_series(),
            rows=self._metrics.rows.copied(),
            by_model=dict(self.tally.by_model),
            latest_compiles=tuple(self.tally.compiles.copy()),
            refused=self.tally.refused,
            started_at=self._metrics.started_at,
            routed=dict(self.routes.steps),
            switches=self.routes.switches,
            escalations=self.routes.escalations,
            first_token_s=middle,
            longest_first_token_s=longest,
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
            models=self.models(),
            host_kv_bytes=sum(model.host_kv for model in self.models()),
            eviction_log=owner.keeper.log.latest(),
        )

    def close(self, timeout: float | None = None) -> bool:
        """End the engine: its requests get ``ClosedError``, its conversations are freed. Models stay loaded.

        Gives whether its threads have ended within ``timeout`` seconds. May be called twice.
        """
        if os.getpid() != self._process:
            return True  # it never lived here
        until = until_when(timeout)
        self._loads.close(0.0)
        ended = self._owner.close(timeout)
        for threads in (self._loads, self._rereads):
            ended &= threads.close(left(until))
        self._models.clear()
        self._known.clear()
        self._loaded.clear()
        self._companions.clear()
        return ended
