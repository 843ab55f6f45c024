"""A log of the latest evictions, with their reasons and times."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from langchain_gemma_jax.engine.base.byte_sizes import show_bytes

KEPT = 64  # the latest ones


@dataclass(frozen=True)
class Evicted:
    """One eviction."""

    model: str
    what: str  # "weights", "conversations" that were dropped, or "conversations to host memory"
    reason: str
    nbytes: int  # freed on the device
    seconds: float  # the time of the eviction

    def __str__(self) -> str:
        return f"{self.model}: {self.what}, {show_bytes(self.nbytes)} in {self.seconds * 1000:.1f} ms: {self.reason}"


class EvictionLog:
    """The latest evictions. The owner thread writes, any thread may read."""

    def __init__(self) -> None:
        self._kept: deque[Evicted] = deque(maxlen=KEPT)

    def add(self, model: str, what: str, reason: str, nbytes: int, seconds: float) -> None:
        self._kept.append(Evicted(model, what, reason, nbytes, seconds))

    def latest(self) -> tuple[Evicted, ...]:
        return tuple(self._kept.copy())
