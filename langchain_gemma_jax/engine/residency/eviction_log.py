"""What was evicted, why, and what that took."""

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
    nbytes: int  # of the device's, that came free
    seconds: float  # that it took

    def __str__(self) -> str:
        return f"{self.model}: {self.what}, {show_bytes(self.nbytes)} in {self.seconds * 1000:.1f} ms: {self.reason}"


class EvictionLog:
    """The latest evictions. The owner thread writes, anybody reads."""

    def __init__(self) -> None:
        self._kept: deque[Evicted] = deque(maxlen=KEPT)

    def add(self, model: str, what: str, reason: str, nbytes: int, seconds: float) -> None:
        self._kept.append(Evicted(model, what, reason, nbytes, seconds))

    def latest(self) -> tuple[Evicted, ...]:
        return tuple(self._kept.copy())
