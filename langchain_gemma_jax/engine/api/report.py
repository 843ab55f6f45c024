"""What the engine did and what it cost, as a caller sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.metrics import Counters
from langchain_gemma_jax.engine.residency.eviction_log import Evicted
from langchain_gemma_jax.engine.residency.model_status import ModelStatus


@dataclass(kw_only=True)
class Report(Counters):
    """What the engine did and what it cost, since it was started. ``print(engine().report())`` shows a table."""

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
