"""What the engine counts, and the report that it gives of it."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.residency.eviction_log import Evicted
from langchain_gemma_jax.engine.residency.model_status import ModelStatus


@dataclass
class Metrics:
    """Counters since the engine was started. Only the owner thread changes them."""

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
    guard_trips: dict[str, int] = field(default_factory=dict)
    # What callers note, and not the owner thread: steps that a route's policy gave to each size ...
    routed: dict[str, int] = field(default_factory=dict)
    switches: int = 0  # ... of them to another size than the one before
    escalations: int = 0  # answers that were not taken, and given again by a larger size
    # The latest requests' seconds from submission to the first token.
    first_tokens: deque[float] = field(default_factory=lambda: deque(maxlen=1024))


@dataclass(frozen=True)
class Report:
    """What the engine did and what it cost, since it was started. ``print(engine().report())`` shows a table."""

    requests: int
    failed: int
    running: int
    waiting: int
    prefilled_tokens: int
    reused_tokens: int
    generated_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    forced_tokens: int
    illegal_tokens: int
    programs: int
    program_bound: int
    compiles: int
    compile_s: float
    cache_hits: int
    cache_misses: int
    cache_saved_s: float
    dispatches: int
    steps: int
    bytes_to_device: int
    bytes_to_host: int
    step_bytes_to_device: int
    host_s: float
    dispatch_s: float
    device_s: float
    evictions: int
    preemptions: int
    memory_retries: int
    loads: int
    load_s: float
    models_evicted: int
    parked: int
    restored: int
    restored_tokens: int
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
        host = f"{self.host_s:.2f} s host ({self.host_share:.1%})"
        restored = f"{self.restored} back with {self.restored_tokens} tokens"
        rows = [
            (
                "requests",
                f"{self.requests} done, {self.failed} of them failed, {self.running} run, {self.waiting} wait",
            ),
            ("prompt tokens", f"{self.prefilled_tokens} read, {self.reused_tokens} reused"),
            ("first token", f"after {self.first_token_s:.3f} s, at most {self.longest_first_token_s:.3f} s"),
            ("generated tokens", f"{self.generated_tokens} in {self.steps} steps"),
            ("drafted tokens", f"{self.drafted_tokens}, accepted {self.accepted_tokens} ({self.acceptance:.0%})"),
            ("grammars", f"{self.forced_tokens} tokens forced, {self.illegal_tokens} drawn twice"),
            ("programs", f"{self.programs} of at most {self.program_bound}"),
            ("compiles", f"{self.compiles} in {self.compile_s:.1f} s"),
            (
                "compile cache",
                f"{self.cache_hits} hits, {self.cache_misses} misses, {self.cache_saved_s:.1f} s saved",
            ),
            ("copied", f"{show_bytes(self.bytes_to_device)} to the device, {show_bytes(self.bytes_to_host)} back"),
            ("time", f"{self.device_s:.2f} s device, {self.dispatch_s:.2f} s dispatch, {host}"),
            ("KV", f"{show_bytes(self.kv_bytes)} of {show_bytes(self.kv_budget)}"),
            *((f"  scope {scope!r}", show_bytes(size)) for scope, size in sorted(self.kv_bytes_by_scope.items())),
            ("memory", f"{self.evictions} evictions, {self.preemptions} preemptions, {self.memory_retries} retries"),
            ("models", f"{self.loads} loads in {self.load_s:.1f} s, {self.models_evicted} evicted"),
            *(("  model", str(model)) for model in self.models),
            ("host KV", f"{show_bytes(self.host_kv_bytes)}; {self.parked} moved there, {restored}"),
            *(("  evicted", str(evicted)) for evicted in self.eviction_log),
            *((f"  routed to {name}", f"{count} steps") for name, count in sorted(self.routed.items())),
            *([("routes", f"{self.switches} switches, {self.escalations} escalations")] if self.routed else []),
            *((f"  guard {name}", f"{count} trips") for name, count in sorted(self.guard_trips.items())),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)


def snapshot(metrics: Metrics) -> dict[str, object]:
    """The counters, copied."""
    found: dict[str, object] = {f.name: getattr(metrics, f.name) for f in dataclasses.fields(metrics)}
    del found["first_tokens"]
    first = list(metrics.first_tokens)  # in one go: the owner thread adds to it
    found |= {"first_token_s": median(first) if first else 0.0, "longest_first_token_s": max(first, default=0.0)}
    return found | {"guard_trips": dict(metrics.guard_trips), "routed": dict(metrics.routed)}


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
