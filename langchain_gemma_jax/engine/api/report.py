"""The engine's work and its cost, as a caller sees them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from langchain_gemma_jax.charts import bars, moments, table
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.metrics import (
    ROWS,
    TOKEN_LATENCIES,
    CompileTime,
    Counters,
    Distribution,
    ModelCounts,
    ProgramName,
    SeriesView,
    Who,
    together,
)
from langchain_gemma_jax.engine.residency.device_use import DeviceUse
from langchain_gemma_jax.engine.residency.eviction_log import Evicted
from langchain_gemma_jax.engine.residency.model_status import ModelStatus

LONGEST = 5  # compiles to show


def placement_in_words(copies: int, nbytes: int) -> str:
    """Return a sentence about implicit copies."""
    if not copies:
        return "no device placement mismatches detected"
    return f"{copies} implicit {'copy' if copies == 1 else 'copies'}, {show_bytes(nbytes)} in total"


_SHARES = ("device_placement", "compilation_times", "acceptance", "host_share", "padding")


@dataclass(kw_only=True)
class Report(Counters):
    """The engine's work and its cost, since it was started. ``print(engine().report())`` shows a table."""

    running: int
    waiting: int
    programs: int
    program_bound: int
    compiles: int
    compile_s: float
    cache_hits: int
    cache_misses: int
    cache_saved_s: float
    kv_bytes: int
    kv_budget: int
    kv_bytes_by_scope: Mapping[str, int]
    guard_trips: Mapping[str, int]
    routed: Mapping[str, int]
    switches: int
    escalations: int
    first_token_s: float  # until the first token: the middle one of the latest requests
    longest_first_token_s: float
    host_kv_bytes: int = 0
    models: tuple[ModelStatus, ...] = ()
    eviction_log: tuple[Evicted, ...] = ()  # the latest ones, oldest first
    trips_by_app: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of each guard, by application
    series: Mapping[Who, SeriesView] = field(default_factory=dict)  # what requests came to, by whose they were
    rows: Distribution = field(default_factory=lambda: together((), ROWS))  # requests of a decode step
    by_model: Mapping[str, ModelCounts] = field(default_factory=dict)
    latest_compiles: tuple[tuple[float, float], ...] = ()  # when each was ready, by time.monotonic(), and its seconds
    started_at: float = 0.0  # when the engine was made, by the clock on the wall
    oldest_wait_s: float = 0.0  # of the requests that wait, the one that has waited longest
    refused: int = 0  # requests that were not taken, as too many waited
    refused_by_model: Mapping[str, int] = field(default_factory=dict)
    by_program: Mapping[ProgramName, CompileTime] = field(default_factory=dict)  # those that were compiled
    programs_making: int = 0  # programs that are being compiled or fetched now
    programs_waiting: int = 0  # those that wait for a thread to do so
    standstill_s: float = 0.0  # seconds that the engine's thread has waited for a program, up to now
    standstill: str = ""  # which, as in "compiling my model read 16 512"
    devices: tuple[DeviceUse, ...] = ()  # memory that each has, and what is used of it
    live_arrays: int = 0  # of JAX's, in the whole process
    implicit_copies: int = 0  # implicit copies, in the engine and in blocks with a guard around them
    implicit_bytes: int = 0
    prefixes_written: int = 0  # files of keys and values that went to the disk
    prefix_bytes_written: int = 0
    prefixes_read: int = 0  # beginnings of conversations that came from the disk
    prefix_tokens_read: int = 0
    prefix_bytes_read: int = 0
    prefixes_rejected: int = 0  # files that were damaged, and are deleted
    prefixes_evicted: int = 0  # files that were deleted to keep the budget
    prefixes_from_peers: int = 0  # of those read: the ones that came from another replica
    prefix_bytes_offered: int = 0  # bytes that other replicas took from here
    resident_bytes: int = 0  # of the process, as the system counts them; 0 where it does not
    private_bytes: int = 0  # of these, without pages of files and memory that is shared
    kernels: str = ""  # which of the package's own kernels run, and why

    @property
    def xla_buckets_compiled(self) -> int:
        """Programs that XLA compiled in this process: each is a function for one bucket of sizes."""
        return self.compiles

    @property
    def xla_total_compile_s(self) -> float:
        return self.compile_s

    @property
    def device_placement(self) -> str:
        """A sentence about implicit copies."""
        return placement_in_words(self.implicit_copies, self.implicit_bytes)

    @property
    def compilation_times(self) -> dict[str, float]:
        """Seconds that each program took to compile, the longest first, by names such as "my model read 16/512"."""
        longest = sorted(self.by_program.items(), key=lambda each: -each[1].seconds)
        return {str(name): spent.seconds for name, spent in longest}

    @property
    def padding(self) -> float:
        """The share of the positions that programs were run for and that held no token."""
        return self.padded_positions / self.positions if self.positions else 0.0

    @property
    def jit_cache_hits(self) -> int:
        """Programs that came from the disk instead."""
        return self.cache_hits

    @property
    def jit_cache_misses(self) -> int:
        return self.cache_misses

    @property
    def cold_starts(self) -> int:
        """Requests whose programs had never run in this process."""
        return sum(view.cold_starts for view in self.series.values())

    def latency(self, name: str, *, cold: bool) -> Distribution:
        """Return how long requests took, those that were cold or the others.

        Args:
            name: "queue", "prefill", "first_token", "decode", "inference" (all but the queue), "total", "token" for
                each token after the first, or "per_token" for their mean in each request.
            cold: of requests whose programs had never run in this process; else of the others.
        """
        views = (view.cold if cold else view.steady for view in self.series.values())
        bounds = {"token": TOKEN_LATENCIES, "per_token": TOKEN_LATENCIES}.get(name)
        found = (view[name] for view in views)
        return together(found) if bounds is None else together(found, bounds)

    def to_dict(self) -> dict[str, object]:
        """Return everything as numbers, texts, lists and dictionaries: what JSON can hold."""
        plain = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        names = ("xla_buckets_compiled", "xla_total_compile_s", "jit_cache_hits", "jit_cache_misses", "cold_starts")
        now = time.monotonic()
        return plain | {
            **{name: getattr(self, name) for name in (*names, *_SHARES)},
            "kv_bytes_by_scope": dict(self.kv_bytes_by_scope),
            "guard_trips": dict(self.guard_trips),
            "routed": dict(self.routed),
            "models": [dataclasses.asdict(model) for model in self.models],
            "eviction_log": [dataclasses.asdict(evicted) for evicted in self.eviction_log],
            "trips_by_app": {kind: dict(apps) for kind, apps in self.trips_by_app.items()},
            "by_program": [{**name._asdict(), **spent._asdict()} for name, spent in self.by_program.items()],
            "refused_by_model": dict(self.refused_by_model),
            "devices": [device._asdict() for device in self.devices],
            "by_model": {model: counts._asdict() for model, counts in self.by_model.items()},
            "latest_compiles": [{"seconds_ago": now - at, "seconds": took} for at, took in self.latest_compiles],
            "rows": _plain(self.rows),
            "series": [
                {
                    **who._asdict(),
                    "cold": {name: _plain(each) for name, each in view.cold.items()},
                    "steady": {name: _plain(each) for name, each in view.steady.items()},
                    "tokens": dict(view.tokens),
                    "outcomes": dict(view.outcomes),
                    "cold_starts": view.cold_starts,
                    "prompts": _plain(view.prompts),
                    "answers": _plain(view.answers),
                }
                for who, view in self.series.items()
            ],
        }

    @property
    def acceptance(self) -> float:
        """The share of drafted tokens that were accepted; 0 if none was drafted."""
        return self.accepted_tokens / self.drafted_tokens if self.drafted_tokens else 0.0

    @property
    def host_share(self) -> float:
        """The engine's own Python as a share of all the time that it worked."""
        total = self.host_s + self.dispatch_s + self.device_s
        return self.host_s / total if total else 0.0

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        """Return the report for a notebook: the table, and where time, tokens and memory went."""
        first = self.latest_compiles[0][0] if self.latest_compiles else 0.0
        times = {
            "device": self.device_s,
            "dispatch": self.dispatch_s,
            "host": self.host_s,
            "compiling": self.compile_s,
            "loading": self.load_s,
        }
        tokens = {
            "read": self.prefilled_tokens,
            "reused": self.reused_tokens,
            "generated": self.generated_tokens,
            "drafted": self.drafted_tokens,
            "accepted": self.accepted_tokens,
        }
        memory = {f"{number}. {model.name}": model.nbytes for number, model in enumerate(self.models, 1)}
        charts = [
            bars("Seconds", times, {name: f"{seconds:.2f} s" for name, seconds in times.items()}),
            bars("Tokens", tokens),
            bars("Device memory", memory, {name: show_bytes(size) for name, size in memory.items()}),
            moments("Compiles over time", [(at - first, took) for at, took in self.latest_compiles]),
        ]
        return f"<div>{''.join(charts)}{table(self._rows())}</div>"

    def _rows(self) -> list[tuple[str, str]]:
        back = f"{show_bytes(self.bytes_to_host)} back"
        host = f"{self.host_s:.2f} s host ({self.host_share:.1%})"
        restored = f"{self.restored} back with {self.restored_tokens} tokens"
        return [
            (
                "requests",
                f"{self.requests} done, {self.failed} of them failed, {self.running} run, {self.waiting} wait",
            ),
            ("prompt tokens", f"{self.prefilled_tokens} read, {self.reused_tokens} reused"),
            ("padding", f"{self.padded_positions} of {self.positions} positions ({self.padding:.0%})"),
            ("first token", f"after {self.first_token_s:.3f} s, at most {self.longest_first_token_s:.3f} s"),
            *self._latency_rows(),
            ("generated tokens", f"{self.generated_tokens} in {self.steps} steps"),
            ("drafted tokens", f"{self.drafted_tokens}, accepted {self.accepted_tokens} ({self.acceptance:.0%})"),
            *self._draft_rows(),
            ("grammars", f"{self.forced_tokens} tokens forced, {self.illegal_tokens} drawn twice"),
            ("programs", f"{self.programs} of at most {self.program_bound}"),
            ("kernels", self.kernels),
            ("compiles", f"{self.compiles} in {self.compile_s:.1f} s"),
            *((f"  {name}", f"{seconds:.1f} s") for name, seconds in list(self.compilation_times.items())[:LONGEST]),
            *self._waits_for_programs(),
            (
                "compile cache",
                f"{self.cache_hits} hits, {self.cache_misses} misses, {self.cache_saved_s:.1f} s saved",
            ),
            (
                "copied",
                f"{show_bytes(self.bytes_to_device)} to the device ({self.device_copies} times), {back}",
            ),
            ("placement", self.device_placement),
            ("time", f"{self.device_s:.2f} s device, {self.dispatch_s:.2f} s dispatch, {host}"),
            *(
                (f"device {each.device}", f"{show_bytes(each.used)} used of {show_bytes(each.budget)} that may be")
                for each in self.devices
            ),
            ("KV", f"{show_bytes(self.kv_bytes)} of {show_bytes(self.kv_budget)}"),
            *((f"  scope {scope!r}", show_bytes(size)) for scope, size in sorted(self.kv_bytes_by_scope.items())),
            ("process", f"{show_bytes(self.resident_bytes)} in memory, {show_bytes(self.private_bytes)} of it its own"),
            ("memory", f"{self.evictions} evictions, {self.preemptions} preemptions, {self.memory_retries} retries"),
            ("models", f"{self.loads} loads in {self.load_s:.1f} s, {self.models_evicted} evicted"),
            *(("  model", str(model)) for model in self.models),
            ("host KV", f"{show_bytes(self.host_kv_bytes)}; {self.parked} moved there, {restored}"),
            *self._prefix_rows(),
            *(("  evicted", str(evicted)) for evicted in self.eviction_log),
            *((f"  routed to {name}", f"{count} steps") for name, count in sorted(self.routed.items())),
            *([("routes", f"{self.switches} switches, {self.escalations} escalations")] if self.routed else []),
            *((f"  guard {name}", self._trips(name, count)) for name, count in sorted(self.guard_trips.items())),
        ]

    def _waits_for_programs(self) -> Iterable[tuple[str, str]]:
        if self.programs_making or self.programs_waiting:
            yield "  now", f"{self.programs_making} are being made, {self.programs_waiting} wait for that"
        if self.standstill:
            yield "  stands still", f"{self.standstill_s:.1f} s {self.standstill}"

    def _trips(self, kind: str, count: int) -> str:
        apps = {app: trips for app, trips in self.trips_by_app.get(kind, {}).items() if app}
        whose = ", ".join(f"{trips} of {app}" for app, trips in sorted(apps.items()))
        return f"{count} trips{whose and f': {whose}'}"

    def _draft_rows(self) -> Iterable[tuple[str, str]]:
        for source, drafted, accepted in (
            ("past answers", self.drafted_from_suffixes, self.accepted_from_suffixes),
            ("the prompt", self.drafted_from_prompt, self.accepted_from_prompt),
            ("a drafter", self.drafted_from_mtp, self.accepted_from_mtp),
        ):
            if drafted:
                yield f"  from {source}", f"{drafted}, accepted {accepted} ({accepted / drafted:.0%})"

    def _prefix_rows(self) -> Iterable[tuple[str, str]]:
        if self.prefixes_written or self.prefixes_read or self.prefixes_rejected:
            size = show_bytes(self.prefix_bytes_read)
            read = f"{self.prefixes_read} back with {self.prefix_tokens_read} tokens ({size})"
            written = f"{self.prefixes_written} written ({show_bytes(self.prefix_bytes_written)})"
            gone = f"{self.prefixes_evicted} evicted, {self.prefixes_rejected} rejected"
            yield "prefixes on disk", f"{written}, {read}, {gone}"
        if self.prefixes_from_peers or self.prefix_bytes_offered:
            given = show_bytes(self.prefix_bytes_offered)
            yield (
                "prefixes of peers",
                f"{self.prefixes_from_peers} came from other replicas, which took {given} from here",
            )

    def _latency_rows(self) -> Iterable[tuple[str, str]]:
        for name, cold in (("cold", True), ("steady", False)):
            first, whole = self.latency("first_token", cold=cold), self.latency("total", cold=cold)
            if count := whole.values:
                half, most = first.quantile(0.5), first.quantile(0.95)
                within = f"first token within {half:g} s for half of them and {most:g} s for 95 %"
                yield f"  {name}", f"{count} requests: {within}, {whole.total / count:.3f} s in all on average"


def _plain(distribution: Distribution) -> dict[str, object]:
    return {
        "bounds": list(distribution.bounds),
        "counts": list(distribution.counts),
        "sum": distribution.total,
        "count": distribution.values,
    }
