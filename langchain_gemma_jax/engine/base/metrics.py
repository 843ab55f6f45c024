"""What the engine counts while it works."""

from __future__ import annotations

import dataclasses
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
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

# Seconds. Goals that people set themselves, such as half a second, are among the bounds: else nobody could count them.
LATENCIES = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
    640.0, 2560.0,
)  # fmt: skip
TOKEN_LATENCIES = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
)  # fmt: skip
ROWS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (*(figure * 10**power for power in range(5) for figure in (1, 2, 5)), 100_000)  # tokens of a request
MOST_SERIES = 100  # models, scopes and applications together that are counted apart
OTHERS = "(others)"


class Distribution(NamedTuple):
    """How values were distributed: a histogram, as it was at some time."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]  # of the values up to each bound and above the one before; the last: above all bounds
    total: float

    @property
    def values(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def plus(self, other: Distribution) -> Distribution:
        """Return both together, which have the same bounds."""
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Distribution(self.bounds, counts, self.total + other.total)

    def quantile(self, share: float) -> float:
        """Return the bound that this share of the values does not pass; 0 without any."""
        wanted, seen = share * self.values, 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            if seen >= wanted and seen:
                return bound
        return 0.0


class Histogram:
    """Counts values by their size. One thread adds to it, any may copy it."""

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
    """Where the time of finished requests went, by what it went into."""

    def __init__(self) -> None:
        self.queue, self.prefill, self.first_token = Histogram(LATENCIES), Histogram(LATENCIES), Histogram(LATENCIES)
        self.decode, self.total, self.token = Histogram(LATENCIES), Histogram(LATENCIES), Histogram(TOKEN_LATENCIES)
        self.inference, self.per_token = Histogram(LATENCIES), Histogram(TOKEN_LATENCIES)

    def add(self, record: Finished) -> None:
        """Count a request that ended well."""
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
    """What requests of one model, scope and application came to."""

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
    """What requests of one model, scope and application came to, as it was at some time."""

    cold: dict[str, Distribution]  # of requests whose programs had never run in this process
    steady: dict[str, Distribution]
    tokens: dict[str, int]
    outcomes: dict[str, int]
    cold_starts: int
    prompts: Distribution  # tokens of the prompts that were answered
    answers: Distribution  # and of their answers


class Who(NamedTuple):
    """The requests that are counted together: those of one model, scope and application."""

    model: str
    scope: str
    app: str


def together(distributions: Iterable[Distribution], bounds: tuple[float, ...] = LATENCIES) -> Distribution:
    """Return several distributions as one."""
    found = Distribution(bounds, (0,) * (len(bounds) + 1), 0.0)
    for each in distributions:
        found = found.plus(each)
    return found


@dataclass(kw_only=True)
class Counters:
    """The numbers that the engine adds up, from its start. A ``Report`` has a copy of them."""

    requests: int = 0  # finished, whichever way
    failed: int = 0  # of them with an error, cancelled ones included
    prefilled_tokens: int = 0  # prompt tokens that were read
    reused_tokens: int = 0  # prompt tokens whose KV was there already
    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0  # of the drafted ones
    forced_tokens: int = 0  # generated ones to which a grammar left no alternative, so that no model was asked
    illegal_tokens: int = 0  # that were drawn without a grammar's mask, and again with it
    dispatches: int = 0  # programs run
    steps: int = 0  # of them: decode steps and verifications; a loop counts each turn
    device_copies: int = 0  # from host memory to the device
    bytes_to_device: int = 0
    bytes_to_host: int = 0
    step_bytes_to_device: int = 0  # of them: for decode steps
    host_s: float = 0.0  # the owner thread's own time while there was work
    dispatch_s: float = 0.0  # handing programs to the device
    device_s: float = 0.0  # waiting for the device
    evictions: int = 0
    preemptions: int = 0
    memory_retries: int = 0  # calls repeated after idle memory was freed
    loads: int = 0  # models that came into memory, again or for the first time
    load_s: float = 0.0
    models_evicted: int = 0
    parked: int = 0  # conversations that were moved to host memory
    restored: int = 0  # and back
    restored_tokens: int = 0
    media_encoded: int = 0  # pictures and sounds that went through an encoder
    media_tokens: int = 0  # soft tokens of theirs that were read


@dataclass(kw_only=True)
class Metrics(Counters):
    """The counters as they grow. The owner thread alone changes them."""

    # The latest requests' seconds from submission to the first token.
    first_tokens: deque[float] = field(default_factory=lambda: deque(maxlen=1024))
    series: dict[Who, Series] = field(default_factory=dict)
    started_at: float = field(default_factory=time.time)  # by the clock on the wall
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

    def copied(self) -> Counters:
        """Return the counters as they are now."""
        return Counters(**{each.name: getattr(self, each.name) for each in dataclasses.fields(Counters)})

    def by_series(self) -> dict[Who, SeriesView]:
        """Return what requests came to, by whose they were."""
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
        """Return the middle one and the longest of the latest requests' seconds to the first token; 0 without any."""
        found = list(self.first_tokens)  # in one go: the owner thread adds to it
        return (median(found), max(found)) if found else (0.0, 0.0)


@dataclass
class RouteTally:
    """The steps that a route's policy gave to each size. Any thread may add to it."""

    steps: dict[str, int] = field(default_factory=dict)
    switches: int = 0  # to another size than the step before
    escalations: int = 0  # answers that were not taken, and given again by a larger size
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
    """What happened to one model."""

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


class ModelTally:
    """What happened to models: programs that were made for them, loads, evictions; and refused requests.

    Any thread may add to it.
    """

    def __init__(self, events: Events) -> None:
        self.by_model: dict[str, ModelCounts] = {}
        self.compiles: deque[tuple[float, float]] = deque(maxlen=256)  # when the latest were ready, and what they took
        self.refused = 0
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
            "refused": self.refused,
        }

    def _made(self, record: ProgramMade) -> None:
        if record.fetched:
            self._add(record.model, ModelCounts(fetches=1, fetch_s=record.seconds))
        else:
            self.compiles.append((record.at, record.seconds))
            self._add(record.model, ModelCounts(compiles=1, compile_s=record.seconds))

    def _refuse(self, _: Refused) -> None:
        with self._lock:
            self.refused += 1

    def _add(self, model: str, more: ModelCounts) -> None:
        with self._lock:
            if model not in self.by_model and len(self.by_model) >= MOST_SERIES:
                model = OTHERS
            before = self.by_model.get(model, ModelCounts())
            self.by_model[model] = before.plus(more)


class CompileCounter:
    """Counts what XLA compiles in some threads, by JAX's own events.

    JAX reports a compile also when its persistent cache served it; those are taken off again.
    """

    COMPILED = "/jax/core/compile/backend_compile_duration"
    SERVED = "/jax/compilation_cache/cache_hits"

    def __init__(self) -> None:
        self.compiles, self.seconds = 0, 0.0
        self._threads: set[int] = set()
        self._lock = threading.Lock()

    def watch_this_thread(self) -> None:
        """Count from now on, what this thread compiles, too."""
        from jax import monitoring

        with self._lock:
            if not self._threads:
                monitoring.register_event_duration_secs_listener(self._duration)
                monitoring.register_event_listener(self._event)
            self._threads.add(threading.get_ident())

    def leave_this_thread(self) -> None:
        """Count no more what it compiles."""
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
