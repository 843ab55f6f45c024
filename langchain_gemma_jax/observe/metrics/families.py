"""Metrics as plain values, made from an engine's report: the name of each, its meaning, and its samples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.metrics import OTHERS, Distribution, ModelCounts, SeriesView, Who
from langchain_gemma_jax.engine.requests.request import FinishReason
from langchain_gemma_jax.private.process_memory import ProcessMemory

Labels: TypeAlias = tuple[str, ...]
LONGEST = 64  # characters of a label

WELL = frozenset(reason.value for reason in FinishReason)
CANCELLED = "CancelledRequestError"
WHO = ("model", "scope", "app")
RESULTS = ("well", "failed", "refused", "cancelled")


@dataclass
class Family:
    """One metric, and its samples by labels. Samples with the same labels are added up."""

    name: str  # without the "_total" of a counter
    kind: str  # "counter", "gauge" or "histogram"
    says: str
    labels: Labels = ()
    numbers: dict[Labels, float] = field(default_factory=dict)
    distributions: dict[Labels, Distribution] = field(default_factory=dict)

    def add(self, value: float, *labels: str) -> Family:
        """Add a number to the sample with these labels."""
        cut = tuple(label[:LONGEST] for label in labels)
        self.numbers[cut] = self.numbers.get(cut, 0.0) + value
        return self

    def spread(self, value: Distribution, *labels: str) -> Family:
        """Add a distribution to the sample with these labels."""
        cut = tuple(label[:LONGEST] for label in labels)
        before = self.distributions.get(cut)
        self.distributions[cut] = value if before is None else before.plus(value)
        return self


def scope_label(scope: str) -> str:
    """Return a tenant's label: a hash instead of the name, always the same."""
    return hashlib.sha256(scope.encode()).hexdigest()[:12] if scope and scope != OTHERS else scope


def who_labels(who: Who) -> Labels:
    """Return model, scope and application as labels."""
    return who.model, scope_label(who.scope), who.app


LATENCIES = {  # key in a report -> name and help text of the metric
    "queue": ("gemma_jax_request_queue_seconds", "Time from submission until the prompt was begun."),
    "prefill": ("gemma_jax_request_prefill_seconds", "Time from there to the first token that the model chose."),
    "first_token": ("gemma_jax_time_to_first_token_seconds", "Time from submission to the first token."),
    "token": ("gemma_jax_inter_token_seconds", "Time of each token after the first one."),
    "decode": ("gemma_jax_request_decode_seconds", "Time from the first token that the model chose to the end."),
    "total": ("gemma_jax_request_seconds", "Time from submission to the end."),
}


def families(report: Report | None) -> list[Family]:
    """Return every metric. With None, no engine is running, and most have no samples."""
    found = [Family("gemma_jax_engine_up", "gauge", "Whether an engine is running.").add(report is not None)]
    for part in (_requests, _programs, _memory, _guards):
        found += part(report)
    return found


def _requests(report: Report | None) -> Iterator[Family]:
    series = {} if report is None else report.series
    requests = Family("gemma_jax_requests", "counter", "Requests that are over.", (*WHO, "outcome"))
    errors = Family("gemma_jax_request_errors", "counter", "Requests that failed, by error.", (*WHO, "error"))
    cancelled = Family("gemma_jax_cancellations", "counter", "Requests that their caller cancelled.", WHO)
    tokens = Family("gemma_jax_tokens", "counter", "Tokens of finished requests, by kind.", (*WHO, "kind"))
    cold = Family("gemma_jax_cold_starts", "counter", "Requests whose programs had never run in the process.", WHO)
    for who, view in series.items():
        labels = who_labels(who)
        cancelled.add(0, *labels)  # from the start: what is missing first has not grown, as Prometheus sees it
        for outcome, count in view.outcomes.items():
            requests.add(count, *labels, outcome)
            if outcome == CANCELLED:
                cancelled.add(count, *labels)
            elif outcome not in WELL:
                errors.add(count, *labels, outcome)
        for kind, count in view.tokens.items():
            tokens.add(count, *labels, kind)
        cold.add(view.cold_starts, *labels)
    yield from (requests, errors, cancelled, tokens, cold, _results(report))
    yield from _latencies(series)
    ratio = Family("gemma_jax_cold_start_ratio", "gauge", "The share of requests that were cold.")
    rows = Family("gemma_jax_step_rows", "histogram", "Requests that shared a decode step.")
    if report is not None:
        ratio.add(report.cold_starts / report.requests if report.requests else 0.0)
        rows.spread(report.rows)
    yield from (ratio, rows)
    yield from _of_engine(
        report,
        ("gemma_jax_engine_start_time_seconds", "gauge", "When the engine was made.", lambda r: r.started_at),
        ("gemma_jax_requests_running", "gauge", "Requests that run.", lambda r: r.running),
        ("gemma_jax_requests_waiting", "gauge", "Requests that wait for their turn.", lambda r: r.waiting),
        ("gemma_jax_oldest_wait_seconds", "gauge", "How long the oldest one has waited.", lambda r: r.oldest_wait_s),
        ("gemma_jax_requests_refused", "counter", "Requests that were not taken: too many wait.", lambda r: r.refused),
        ("gemma_jax_preemptions", "counter", "Requests that gave up their memory.", lambda r: r.preemptions),
        ("gemma_jax_steps", "counter", "Decode steps and verifications.", lambda r: r.steps),
        ("gemma_jax_device_busy_seconds", "counter", "Time in which the device had work in hand.", lambda r: r.busy_s),
        ("gemma_jax_positions", "counter", "Token positions that programs were run for.", lambda r: r.positions),
        ("gemma_jax_padded_positions", "counter", "Those that held no token.", lambda r: r.padded_positions),
        ("gemma_jax_nan_scores", "counter", "Requests that ended by scores that are NaN.", lambda r: r.nan_scores),
    )


def _results(report: Report | None) -> Family:
    """Return every request once, by its result: what an error budget is computed from."""
    says = "Requests that are over or were refused: well, failed, refused or cancelled."
    family = Family("gemma_jax_requests_by_result", "counter", says, ("model", "result"))
    if report is not None:
        for who, view in report.series.items():
            for result in RESULTS:  # each is there from the start: a ratio of what is missing is nothing
                family.add(0, who.model, result)
            for outcome, count in view.outcomes.items():
                result = "well" if outcome in WELL else "cancelled" if outcome == CANCELLED else "failed"
                family.add(count, who.model, result)
        for model, count in report.refused_by_model.items():
            family.add(count, model, "refused")
    return family


def _latencies(series: Mapping[Who, SeriesView]) -> Iterator[Family]:
    for name, (title, says) in LATENCIES.items():
        family = Family(title, "histogram", says + " Cold: programs ran for the first time.", (*WHO, "start"))
        for who, view in series.items():
            for start, latencies in (("cold", view.cold), ("steady", view.steady)):
                if latencies["total"].values:
                    family.spread(latencies[name], *who_labels(who), start)
        yield family


def _programs(report: Report | None) -> Iterator[Family]:
    by_model = {} if report is None else report.by_model
    named: tuple[tuple[str, str, Callable[[ModelCounts], float]], ...] = (
        ("gemma_jax_compiles", "Programs that XLA compiled.", lambda c: c.compiles),
        ("gemma_jax_compile_seconds", "What compiling them took.", lambda c: c.compile_s),
        ("gemma_jax_program_fetches", "Programs that came from the disk.", lambda c: c.fetches),
        ("gemma_jax_program_fetch_seconds", "What fetching them took.", lambda c: c.fetch_s),
        ("gemma_jax_model_loads", "Models that came into memory, again or for the first time.", lambda c: c.loads),
        ("gemma_jax_model_load_seconds", "What loading them took.", lambda c: c.load_s),
        ("gemma_jax_model_evictions", "Models that left memory.", lambda c: c.evictions),
    )
    for name, says, value in named:
        family = Family(name, "counter", says, ("model",))
        for model, counts in by_model.items():
            family.add(value(counts), model)
        yield family
    yield from _by_program(report)
    yield from _of_engine(
        report,
        ("gemma_jax_programs_making", "gauge", "Programs being compiled or fetched.", lambda r: r.programs_making),
        ("gemma_jax_programs_waiting", "gauge", "Programs that wait for that.", lambda r: r.programs_waiting),
        ("gemma_jax_standstill_seconds", "gauge", "How long all have waited for a program.", lambda r: r.standstill_s),
        ("gemma_jax_compile_cache_hits", "counter", "Programs found on the disk.", lambda r: r.cache_hits),
        ("gemma_jax_compile_cache_misses", "counter", "Programs not found there.", lambda r: r.cache_misses),
        ("gemma_jax_compile_cache_hit_ratio", "gauge", "The share that was found; 1 if none was needed.", _hit_ratio),
        ("gemma_jax_programs", "gauge", "Programs that were used, of those there can be.", lambda r: r.programs),
        ("gemma_jax_programs_bound", "gauge", "Programs that there can be.", lambda r: r.program_bound),
    )


def _by_program(report: Report | None) -> Iterator[Family]:
    labels = ("model", "program", "bucket")
    compiles = Family("gemma_jax_program_compiles", "counter", "Compiles of each program.", labels)
    seconds = Family("gemma_jax_program_compile_seconds", "counter", "What compiling each took.", labels)
    for name, spent in ({} if report is None else report.by_program).items():
        compiles.add(spent.compiles, *name)
        seconds.add(spent.seconds, *name)
    yield from (compiles, seconds)


def _devices(report: Report | None) -> Iterator[Family]:
    capacity = Family("gemma_jax_device_capacity_bytes", "gauge", "What there is on a device.", ("device",))
    budget = Family("gemma_jax_device_budget_bytes", "gauge", "What models may take of it.", ("device",))
    used = Family("gemma_jax_device_used_bytes", "gauge", "What they take.", ("device",))
    for each in () if report is None else report.devices:
        capacity.add(each.capacity, each.device)
        budget.add(each.budget, each.device)
        used.add(each.used, each.device)
    yield from (capacity, budget, used)


def _memory(report: Report | None) -> Iterator[Family]:
    device = Family("gemma_jax_device_memory_bytes", "gauge", "What models take on the device.", ("model", "part"))
    resident = Family("gemma_jax_model_resident", "gauge", "Whether a model is in memory.", ("model",))
    for model in () if report is None else report.models:
        for part, size in (("weights", model.weights), ("kv", model.kv), ("workspace", model.workspace)):
            device.add(size, model.name, part)
        resident.add(model.resident, model.name)
    host = Family("gemma_jax_host_memory_bytes", "gauge", "Host memory: parked conversations, the process.", ("part",))
    copies = Family("gemma_jax_copied_bytes", "counter", "Bytes between host and device.", ("direction",))
    disk = Family("gemma_jax_prefix_store_bytes", "counter", "Bytes of prefixes on the disk.", ("direction",))
    files = Family(
        "gemma_jax_prefix_store_files", "counter", "Prefixes on the disk, by what became of them.", ("what",)
    )
    if report is not None:
        host.add(report.host_kv_bytes, "kv")
        copies.add(report.bytes_to_device, "to_device").add(report.bytes_to_host, "to_host")
        disk.add(report.prefix_bytes_written, "written").add(report.prefix_bytes_read, "read")
        files.add(report.prefixes_written, "written").add(report.prefixes_read, "read")
        files.add(report.prefixes_evicted, "evicted").add(report.prefixes_rejected, "rejected")
        disk.add(report.prefix_bytes_offered, "offered")
        files.add(report.prefixes_from_peers, "from_peers")
    if (process := ProcessMemory.now(share=True)).resident:
        host.add(process.resident, "process")
        host.add(process.private, "process_private")
    if process.share:
        host.add(process.share, "process_share")
    yield from (device, resident, host, copies, disk, files, *_devices(report))
    yield from _of_engine(
        report,
        (
            "gemma_jax_live_arrays",
            "gauge",
            "Arrays of JAX in the process, a user's too.",
            lambda r: r.live_arrays,
        ),
        ("gemma_jax_device_copies", "counter", "Copies of host arrays to the device.", lambda r: r.device_copies),
        ("gemma_jax_kv_bytes", "gauge", "What conversations take on the device.", lambda r: r.kv_bytes),
        ("gemma_jax_kv_budget_bytes", "gauge", "What they may take.", lambda r: r.kv_budget),
        ("gemma_jax_kv_usage_ratio", "gauge", "The share that is in use.", kv_usage),
        ("gemma_jax_prefix_store_tokens", "counter", "Tokens that came from the disk.", lambda r: r.prefix_tokens_read),
        ("gemma_jax_kv_evictions", "counter", "Conversations that were given up or parked.", lambda r: r.evictions),
        ("gemma_jax_memory_retries", "counter", "Times that the device's memory was full.", lambda r: r.memory_retries),
    )


def _guards(report: Report | None) -> Iterator[Family]:
    family = Family("gemma_jax_guard_trips", "counter", "Trips of guards.", ("guard", "app"))
    for kind, apps in ({} if report is None else report.trips_by_app).items():
        for app, count in apps.items():
            family.add(count, kind, app)
    yield family


def _of_engine(report: Report | None, *asked: tuple[str, str, str, Callable[[Report], float]]) -> Iterator[Family]:
    for name, kind, says, value in asked:
        family = Family(name, kind, says)
        yield family if report is None else family.add(value(report))


def _hit_ratio(report: Report) -> float:
    asked = report.cache_hits + report.cache_misses
    return report.cache_hits / asked if asked else 1.0


def kv_usage(report: Report) -> float:
    """The share of the memory for conversations that is in use, from 0 to 1."""
    return min(1.0, report.kv_bytes / report.kv_budget) if report.kv_budget else 0.0


def of_model(series: Iterable[tuple[Who, SeriesView]]) -> dict[str, list[SeriesView]]:
    """Return the requests' series by model, for all scopes and applications."""
    found: dict[str, list[SeriesView]] = {}
    for who, view in series:
        found.setdefault(who.model, []).append(view)
    return found
