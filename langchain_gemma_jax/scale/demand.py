"""How many replicas a load needs: from what their engines have free, and from how long the longest waits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaLoad:
    """What one replica's engine does."""

    running: float
    waiting: float
    oldest_wait_s: float


@dataclass(frozen=True, kw_only=True)
class ReplicaDemand:
    """The rules by which replicas are wanted."""

    rows: int
    """Conversations that one engine computes at once."""
    busy: float = 0.75
    """The share of the rows that is to be in use: the others are for calls that come before a new replica is there."""
    patience_s: float = 5.0
    """How long a call may wait for its turn before another replica is wanted, however few calls there are."""
    slack: float = 0.8
    """How much of that share the calls may fill, at most, when there is one replica less."""

    def replicas(self, loads: Sequence[ReplicaLoad], *, now: int, queued: float = 0.0) -> int:
        """Return how many replicas are wanted, where there are ``now``.

        A replica that goes takes with it what it remembers of its conversations, so one is given up only where the
        others have room to spare.

        Args:
            loads: of the replicas that have told.
            now: how many there are.
            queued: calls that no replica has taken.
        """
        calls = queued + sum(load.running + load.waiting for load in loads)
        wanted = math.ceil(calls / (self.rows * self.busy))
        if any(load.oldest_wait_s > self.patience_s for load in loads):
            return max(wanted, now + 1)
        if wanted < now:
            return min(now, math.ceil(calls / (self.rows * self.busy * self.slack)))
        return wanted
