"""What the engine counts while it works."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from langchain_gemma_jax.engine.base.events import Finished, StepRouted


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


@dataclass(kw_only=True)
class Metrics(Counters):
    """The counters as they grow. The owner thread alone changes them."""

    guard_trips: dict[str, int] = field(default_factory=dict)
    # The latest requests' seconds from submission to the first token.
    first_tokens: deque[float] = field(default_factory=lambda: deque(maxlen=1024))

    def finished(self, record: Finished) -> None:
        """Count a request that is over."""
        self.requests += 1
        self.failed += record.failed
        if record.generated_tokens and not record.failed:
            self.first_tokens.append(record.timings.first_token_s)

    def copied(self) -> Counters:
        """Return the counters as they are now."""
        return Counters(**{each.name: getattr(self, each.name) for each in dataclasses.fields(Counters)})

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
