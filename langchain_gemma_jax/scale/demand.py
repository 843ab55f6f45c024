"""The number of replicas for a load, from the engines' free rows and the longest wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaLoad:
    """The load of one replica's engine."""

    running: float
    waiting: float
    oldest_wait_s: float


@dataclass(frozen=True, kw_only=True)
class ReplicaDemand:
    """The rules that decide on the number of replicas."""

    rows: int
    """The number of conversations that one engine computes at once."""
    busy: float = 0.75
    """The share of rows that should be in use. The rest is for calls that come before a new replica is ready."""
    patience_s: float = 5.0
    """Seconds that a call may wait before another replica is wanted, however few calls there are."""
    slack: float = 0.8
    """The most of that share that the calls may fill once a replica has been removed."""

    def replicas(self, loads: Sequence[ReplicaLoad], *, now: int, queued: float = 0.0) -> int:
        """Return the number of replicas that are wanted.

        A removed replica loses its conversations' KV caches, so one is removed only if the others have room to spare.

        Args:
            loads: the loads of the replicas that have reported.
            now: the number of replicas now.
            queued: the number of calls that no replica has taken.
        """
        calls = queued + sum(load.running + load.waiting for load in loads)
        wanted = math.ceil(calls / (self.rows * self.busy))
        if any(load.oldest_wait_s > self.patience_s for load in loads):
            return max(wanted, now + 1)
        if wanted < now:
            return min(now, math.ceil(calls / (self.rows * self.busy * self.slack)))
        return wanted
