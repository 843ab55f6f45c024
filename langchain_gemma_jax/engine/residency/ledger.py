"""``Ledger``: the accounting of memory. It decides whether a model fits, and which models are evicted first.

A model's bytes are reserved here before it is loaded, and the sum of reserved bytes never exceeds a device's budget. A
model in use is never evicted; a request for its bytes waits. Of unused models, the least recently used is evicted
first. One thread owns a ledger, so there are no locks, and the caller passes the time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State, TakesKv, meet

GUARD_SECONDS = 1.0  # the longest time that a loaded model is kept for its first use


@dataclass(frozen=True)
class Grant:
    """A model fits after these models and this number of bytes of idle conversations have been evicted."""

    evict: tuple[LedgerEntry, ...] = ()
    idle_kv: int = 0


@dataclass(frozen=True)
class Wait:
    """A model fits once requests or leases of other models have ended."""

    missing: int


@dataclass(frozen=True)
class Never:
    """A model does not fit, because of models that are never evicted."""

    missing: int


Decision: TypeAlias = Grant | Wait | Never


class Ledger:
    """The entries of the engine's models, in memory or not."""

    def __init__(self, budget: Callable[[Hashable], int]) -> None:
        self.budget = budget  # returns the bytes for each device of a placement
        self.entries: list[LedgerEntry] = []

    def at(self, home: Hashable) -> list[LedgerEntry]:
        """Return the entries that take memory on any device of a placement."""
        return [entry for entry in self.entries if entry.state is not State.ABSENT and meet(entry.home, home)]

    def used(self, home: Hashable) -> int:
        """Return the bytes that are taken on a device. For several devices, it is at least those of the fullest."""
        return sum(entry.nbytes for entry in self.at(home))

    def kv_room(self, entry: LedgerEntry) -> int:
        """Return the bytes that a model's conversations may take together. The smallest conversation always fits."""
        others = sum(other.nbytes for other in self.at(entry.home) if other is not entry)
        return max(entry.floor, self.budget(entry.home) - others - entry.weights - entry.extra_bytes - entry.workspace)

    def can_load(self, entry: LedgerEntry, now: float) -> Decision:
        """Decide what must happen before a model is loaded. This changes nothing."""
        missing = entry.need + self.used(entry.home) - self.budget(entry.home)
        others = [other for other in self.at(entry.home) if other is not entry]
        if (found := self._free(missing, others, now)) is not None:
            return found
        stays = sum(other.need for other in others if other.pinned or not other.returns)
        beyond = entry.need + stays - self.budget(entry.home)
        return Never(beyond) if beyond > 0 else Wait(missing)

    def to_free(
        self, missing: int, home: Hashable, now: float, but: LedgerEntry | None = None
    ) -> tuple[LedgerEntry, ...] | None:
        """Return the models to evict to free this number of bytes. None: evictable models do not have as many."""
        found = self._free(missing, [entry for entry in self.at(home) if entry is not but], now, idle_kv=False)
        return None if found is None else found.evict

    def reserve(self, entry: LedgerEntry) -> None:
        """Reserve the bytes of a model that will be loaded now."""
        entry.state = State.LOADING

    def settle(self, entry: LedgerEntry, conversations: TakesKv, now: float, seconds: float) -> None:
        """Note that a model is loaded, with its conversations and the seconds that loading took."""
        entry.state, entry.last_used, entry.load_s, entry.conversations = State.RESIDENT, now, seconds, conversations
        entry.guarded_until = now + min(seconds, GUARD_SECONDS)

    def note_running(self, running: Iterable[LedgerEntry], now: float) -> None:
        """Set the models that are running requests: one entry for each request."""
        for entry in self.entries:
            entry.running = 0
        for entry in running:
            entry.running += 1
        for entry in self.entries:
            if entry.running:
                entry.last_used, entry.guarded_until = now, 0.0

    def expired(self, now: float) -> list[LedgerEntry]:
        """Return the idle entries whose keep-alive time is over. Those in use are left for later."""
        return [entry for entry in self.entries if entry.idle and _time_left(entry, now) <= 0]

    def next_change(self, now: float) -> float | None:
        """Return the seconds until the next guard or keep-alive time is over; None: there is none."""
        times = []
        for entry in self.entries:
            if entry.idle:
                if entry.guarded_until > now:
                    times.append(entry.guarded_until - now)
                if (left := _time_left(entry, now)) < float("inf"):
                    times.append(max(0.0, left))
        return min(times, default=None)

    def _free(self, missing: int, others: list[LedgerEntry], now: float, *, idle_kv: bool = True) -> Grant | None:
        """Plan the freeing of bytes: by idle conversations if they are enough, otherwise by evicting models as well."""
        spare = sum(other.idle_kv for other in others) if idle_kv else 0
        victims: list[LedgerEntry] = []
        for victim in sorted((e for e in others if e.evictable(now)), key=lambda e: e.last_used):
            if missing <= spare:
                break
            victims.append(victim)
            missing -= victim.nbytes
            spare -= victim.idle_kv if idle_kv else 0
        if missing > spare:
            return None
        # A small model that was chosen first may not be needed if a large one had to follow.
        for victim in list(reversed(victims)):
            left = victim.idle_kv if idle_kv else 0
            if missing + victim.nbytes <= spare + left:
                victims.remove(victim)
                missing, spare = missing + victim.nbytes, spare + left
        return Grant(tuple(victims), max(0, missing))


def _time_left(entry: LedgerEntry, now: float) -> float:
    """Return the seconds that a model may stay unused."""
    if entry.leaving:
        return 0.0
    if entry.keep_alive is None:
        return float("inf")
    return max(entry.last_used + entry.keep_alive, entry.guarded_until) - now
