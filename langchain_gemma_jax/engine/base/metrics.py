"""The engine's counters, histograms and tallies."""

from __future__ import annotations

import dataclasses
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from langchain_gemma_jax.engine.base.events import (
    Events,
    Finished,
    ModelEvicted,
    ModelLoaded,
    ProgramMade,
    Refused,
    StepRouted,
)

# Seconds. Usual targets, such as half a second, are among the bounds, so that the share within a target can be counted.
LATENCIES = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
TOKEN_LATENCIES = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
ROWS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (*(figure * 10**power for power in range(5) for figure in (1, 2, 5)), 100_000)  # tokens of a request
MOST_SERIES = 100  # combinations of model, scope and application with series of their own
MOST_PROGRAMS = 500  # programs with seconds of their own: a model of 128k tokens has some two hundred
OTHERS = "(others)"


class Distribution(NamedTuple):
    """A histogram of values, copied at some time."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]  # of the values up to each bound and above the one before; the last: above all bounds
    total: float

    @property
    def values(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def plus(self, other: Distribution) -> Distribution:
        """Return the sum of two distributions with the same bounds."""
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(self.bounds, counts, self.total + other.total)

    def quantile(self, share: float) -> float:
        """Return the smallest bound that this share of the values is within; 0 if there are no values."""
        wanted, seen = share * self.values, 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            if seen >= wanted and seen:
                return bound
        return 0.0


class Histogram:
    """Counts values by size. One thread adds to it, any may copy it."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self._total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def copied(self) -> Distribution:
        """Return the counts as they are now."""
        return Distribution(self._bounds, tuple(self._counts), self._total)


class Latencies:
    """Histograms of the durations of finished requests, by phase."""

    def __init__(self) -> None:
        self.queue, self.prefill, self.first_token = Histogram(LATENCIES), Histogram(LATENCIES), Histogram(LATENCIES)
        self.decode, self.total, self.token = Histogram(LATENCIES), Histogram(LATENCIES), Histogram(TOKEN_LATENCIES)
        self.inference, self.per_token = Histogram(LATENCIES), Histogram(TOKEN_LATENCIES)

    def add(self, record: Finished) -> None:
        """Count a successful request."""
        times = record.timings
        self.queue.add(times.queued_s)
        self.prefill.add(times.prefill_s)
        self.first_token.add(times.first_token_s)
        self.decode.add(max(0.0, times.total_s - times.queued_s - times.prefill_s))
        self.total.add(times.total_s)
        self.inference.add(times.total_s - times.queued_s)
        if record.generated_tokens > 1:
            self.per_token.add((times.total_s - times.first_token_s) / (record.generated_tokens - 1))
        for seconds in record.token_s:
            self.token.add(seconds)

    def copied(self) -> dict[str, Distribution]:
        """Return the distributions by name."""
        return {name: histogram.copied() for name, histogram in vars(self).items()}


TOKEN_KINDS = ("read", "reused", "generated", "drafted", "accepted", "forced")


class Series:
    """The counts of requests of one model, scope and application."""

    def __init__(self) -> None:
        self.cold, self.steady = Latencies(), Latencies()
        self.prompts, self.answers = Histogram(SIZES), Histogram(SIZES)
        self.tokens = dict.fromkeys(TOKEN_KINDS, 0)
        self.outcomes: dict[str, int] = {}
        self.cold_starts = 0

    def add(self, record: Finished) -> None:
        """Count a request that is over."""
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self.cold_starts += record.cold
        if not record.failed:
            (self.cold if record.cold else self.steady).add(record)
            self.prompts.add(record.prompt_tokens)
            self.answers.add(record.generated_tokens)
        prompt = (record.prompt_tokens - record.reused_tokens, record.reused_tokens)
        answer = (record.generated_tokens, record.drafted_tokens, record.accepted_tokens, record.forced_tokens)
        for kind, count in zip(TOKEN_KINDS, (*prompt, *answer), strict=True):
            self.tokens[kind] += count

    def copied(self) -> SeriesView:
        """Return the numbers as they are now."""
        return SeriesView(
            self.cold.copied(),
            self.steady.copied(),
            self.tokens.copy(),
            self.outcomes.copy(),
            self.cold_starts,
            self.prompts.copied(),
            self.answers.copied(),
        )


class SeriesView(NamedTuple):
    """The counts of requests of one model, scope and application, copied at some time."""

    cold: dict[str, Distribution]  # of requests whose programs had never run in this process
    steady: dict[str, Distribution]
    tokens: dict[str, int]
    outcomes: dict[str, int]
    cold_starts: int
    prompts: Distribution  # tokens of prompts, of successful requests
    answers: Distribution  # tokens of their answers


class Who(NamedTuple):
    """The key of requests that are counted together: one model, scope and application."""

    model: str
    scope: str
    app: str


def together(distributions: Iterable[Distribution], bounds: tuple[float, ...] = LATENCIES) -> Distribution:
    """Return the sum of several distributions."""
    found = Distribution(bounds, (0,) * (len(bounds) + 1), 0.0)
    for each in distributions:
        found = found.plus(each)
    return found


@dataclass(kw_only=True)
class Counters:
    """The engine's totals since its start. A ``Report`` has a copy of them."""

    requests: int = 0  # finished, successfully or not
    failed: int = 0  # those of them with an error, cancelled ones included
    prefilled_tokens: int = 0  # prompt tokens that were read
    reused_tokens: int = 0  # prompt tokens whose KV was there already
    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0  # of the drafted ones
    drafted_from_suffixes: int = 0  # those of them that past answers of the scope gave ...
    accepted_from_suffixes: int = 0
    drafted_from_prompt: int = 0  # ... those of the request's own text ...
    accepted_from_prompt: int = 0
    drafted_from_mtp: int = 0  # ... and those of a drafter beside the model
    accepted_from_mtp: int = 0
    forced_tokens: int = 0  # generated tokens to which a grammar left no alternative, so the model was not run
    illegal_tokens: int = 0  # drawn without a grammar's mask, and drawn again with it
    dispatches: int = 0  # programs run
    steps: int = 0  # those of them that are decode steps and verifications; a loop counts each iteration
    device_copies: int = 0  # from host memory to the device
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    step_bytes_to_device: int = 0  # those of them for decode steps
    host_s: float = 0.0  # the owner thread's own time while there was work
    dispatch_s: float = 0.0  # handing programs to the device
    device_s: float = 0.0  # waiting for the device
    busy_s: float = 0.0  # from a program's dispatch until the last result was seen: the device had work in hand
    positions: int = 0  # token positions that programs were run for ...
    padded_positions: int = 0  # ... and those of them that held no token: a chunk's padding, a step's empty rows
    nan_scores: int = 0  # requests that ended because the model's scores were NaN
    evictions: int = 0
    preemptions: int = 0
    memory_retries: int = 0  # calls repeated after idle memory was freed
    loads: int = 0  # models that came into memory, again or for the first time
    load_s: float = 0.0
    models_evicted: int = 0
    parked: int = 0  # conversations that were moved to host memory
    restored: int = 0  # conversations that were moved back
    restored_tokens: int = 0
    media_encoded: int = 0  # pictures and sounds that went through an encoder
    media_tokens: int = 0  # their soft tokens that were read


@dataclass(kw_only=True)
class Metrics(Counters):
    """The live counters. The owner thread alone changes them."""

    # The latest requests' seconds from submission to the first token.
    first_tokens: deque[float] = field(default_factory=lambda: deque(maxlen=1024))
    series: dict[Who, Series] = field(default_factory=dict)
    started_at: float = field(default_factory=time.time)  # wall-clock time
    rows: Histogram = field(default_factory=lambda: Histogram(ROWS))  # requests of each decode step

    def finished(self, record: Finished) -> None:
        """Count a request that is over."""
        self.requests += 1
        self.failed += record.failed
        who = Who(record.model, record.scope, record.app)
        if who not in self.series and len(self.series) >= MOST_SERIES:
            who = Who(OTHERS, OTHERS, OTHERS)
        if (series := self.series.get(who)) is None:
            series = self.series[who] = Series()
        series.add(record)
        if record.generated_tokens and not record.failed:
            self.first_tokens.append(record.timings.first_token_s)

    def count_positions(self, positions: int, tokens: int) -> None:
        """Count the positions that a program is run for, of which so many hold a token."""
        self.positions += positions
        self.padded_positions += positions - tokens

    def add_draft(self, source: str, drafted: int, accepted: int) -> None:
        """Count a draft that was checked, by its source."""
        for kind, count in (("drafted", drafted), ("accepted", accepted)):
            name = f"{kind}_from_{source}"
            setattr(self, name, getattr(self, name) + count)

    def copied(self) -> Counters:
        """Return the counters as they are now."""
        return Counters(**{each.name: getattr(self, each.name) for each in dataclasses.fields(Counters)})

    def by_series(self) -> dict[Who, SeriesView]:
        """Return the counts of requests by model, scope and application."""
        return {who: series.copied() for who, series in list(self.series.items())}

    def reported(self) -> dict[str, Any]:
        """Return the counters, and the distributions, under their names in a ``Report``."""
        middle, longest = self.first_token_seconds()
        return {
            "first_token_s": middle,
            "longest_first_token_s": longest,
            **vars(self.copied()),
            "series": self.by_series(),
            "rows": self.rows.copied(),
            "started_at": self.started_at,
        }

    def first_token_seconds(self) -> tuple[float, float]:
        """Return the median and the longest time to the first token of the latest requests; 0 if there are none."""
        found = list(self.first_tokens)  # copied at once: the owner thread adds to it
        return (median(found), max(found)) if found else (0.0, 0.0)


@dataclass
class RouteTally:
    """Counts of the steps that routes gave to each size. Any thread may add to it."""

    steps: dict[str, int] = field(default_factory=dict)
    switches: int = 0  # to another size than the step before
    escalations: int = 0  # answers that were rejected, so that a larger size answered again
    # A signal handler may come a second time.
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def add(self, record: StepRouted) -> None:
        """Count a step."""
        with self._lock:
            self.steps[record.size] = self.steps.get(record.size, 0) + 1
            self.switches += record.switched
            self.escalations += record.escalated

    def reported(self) -> dict[str, Any]:
        """Return the counts under their names in a ``Report``."""
        return {"routed": dict(self.steps), "switches": self.switches, "escalations": self.escalations}


class ModelCounts(NamedTuple):
    """Counts of one model's compiles, fetches, loads and evictions."""

    compiles: int = 0
    compile_s: float = 0.0
    fetches: int = 0
    fetch_s: float = 0.0
    loads: int = 0
    load_s: float = 0.0
    evictions: int = 0

    def plus(self, more: ModelCounts) -> ModelCounts:
        return ModelCounts(
            self.compiles + more.compiles,
            self.compile_s + more.compile_s,
            self.fetches + more.fetches,
            self.fetch_s + more.fetch_s,
            self.loads + more.loads,
            self.load_s + more.load_s,
            self.evictions + more.evictions,
        )


class ProgramName(NamedTuple):
    """A program of a model, for people: its kind, and the sizes that it is compiled for."""

    model: str
    program: str
    bucket: str  # such as "16/512"

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


class CompileTime(NamedTuple):
    """The compiles of one program."""

    compiles: int = 0
    seconds: float = 0.0


class ModelTally:
    """Counts by model of programs made, loads, evictions and refused requests.

    Any thread may add to it.
    """

    def __init__(self, events: Events) -> None:
        self.by_model: dict[str, ModelCounts] = {}
        self.compiles: deque[tuple[float, float]] = deque(maxlen=256)  # the latest: time when ready, and seconds taken
        self.by_program: dict[ProgramName, CompileTime] = {}  # those that were compiled
        self.refused_by_model: dict[str, int] = {}
        self._lock = threading.RLock()
        events.subscribe(ProgramMade, self._made)
        events.subscribe(ModelLoaded, lambda each: self._add(each.model, ModelCounts(loads=1, load_s=each.seconds)))
        events.subscribe(ModelEvicted, lambda each: self._add(each.model, ModelCounts(evictions=1)))
        events.subscribe(Refused, self._refuse)

    def reported(self) -> dict[str, Any]:
        """Return the counts under their names in a ``Report``."""
        return {
            "by_model": dict(self.by_model),
            "latest_compiles": tuple(self.compiles.copy()),
            "by_program": dict(self.by_program),
            "refused": self.refused,
            "refused_by_model": dict(self.refused_by_model),
        }

    @property
    def refused(self) -> int:
        """The number of requests that were not taken, as too many waited."""
        return sum(self.refused_by_model.copy().values())

    def _made(self, record: ProgramMade) -> None:
        if record.fetched:
            self._add(record.model, ModelCounts(fetches=1, fetch_s=record.seconds))
        else:
            self.compiles.append((record.at, record.seconds))
            self._add(record.model, ModelCounts(compiles=1, compile_s=record.seconds))
            self._compiled(ProgramName(record.model, record.kind, "/".join(map(str, record.sizes))), record.seconds)

    def _compiled(self, name: ProgramName, seconds: float) -> None:
        with self._lock:
            if name not in self.by_program and len(self.by_program) >= MOST_PROGRAMS:
                name = ProgramName(OTHERS, OTHERS, OTHERS)
            before = self.by_program.get(name, CompileTime())
            self.by_program[name] = CompileTime(before.compiles + 1, before.seconds + seconds)

    def _refuse(self, record: Refused) -> None:
        with self._lock:
            model = _room_for(record.model, self.refused_by_model)
            self.refused_by_model[model] = self.refused_by_model.get(model, 0) + 1

    def _add(self, model: str, more: ModelCounts) -> None:
        with self._lock:
            model = _room_for(model, self.by_model)
            before = self.by_model.get(model, ModelCounts())
            self.by_model[model] = before.plus(more)


def _room_for(model: str, known: Mapping[str, object]) -> str:
    """Return the name that a model is counted under: its own, as long as there are not too many."""
    return OTHERS if model not in known and len(known) >= MOST_SERIES else model


class CompileCounter:
    """Counts XLA's compiles in some threads, by JAX's own events.

    JAX reports a compile also if its persistent cache served it; those are subtracted again.
    """

    COMPILED = "/jax/core/compile/backend_compile_duration"
    SERVED = "/jax/compilation_cache/cache_hits"

    def __init__(self) -> None:
        self.compiles, self.seconds = 0, 0.0
        self._threads: set[int] = set()
        self._lock = threading.Lock()

    def watch_this_thread(self) -> None:
        """Count this thread's compiles, too, from now on."""
        from jax import monitoring

        with self._lock:
            if not self._threads:
                monitoring.register_event_duration_secs_listener(self._duration)
                monitoring.register_event_listener(self._event)
            self._threads.add(threading.get_ident())

    def leave_this_thread(self) -> None:
        """Stop counting this thread's compiles."""
        from jax import monitoring

        with self._lock:
            if threading.get_ident() in self._threads:
                self._threads.remove(threading.get_ident())
                if not self._threads:
                    monitoring.unregister_event_duration_listener(self._duration)
                    monitoring.unregister_event_listener(self._event)

    def _duration(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event == self.COMPILED and threading.get_ident() in self._threads:
            with self._lock:
                self.compiles += 1
                self.seconds += duration_secs

    def _event(self, event: str, **_: str | int) -> None:
        if event == self.SERVED and threading.get_ident() in self._threads:
            with self._lock:
                self.compiles -= 1
