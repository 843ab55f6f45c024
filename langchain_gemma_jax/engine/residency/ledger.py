"""The books of memory: what each model takes, what fits, who goes first.

Nothing is loaded before its bytes are reserved here, and the sum of what is reserved never passes a
device's budget. A model in use is never evicted; who needs its bytes waits. Of those that nobody uses
the one goes first that was used the longest time ago. One thread owns a ledger; nothing is locked, and
the time is what the caller says.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State, TakesKv, meet

GUARD_SECONDS = 1.0  # at most, that a model stays for whoever had it loaded and has not used it yet


@dataclass(frozen=True)
class Grant:
    """A model fits, once these models were evicted and so many bytes of idle conversations were given up."""

    evict: tuple[LedgerEntry, ...] = ()
    idle_kv: int = 0


@dataclass(frozen=True)
class Wait:
    """A model fits when others are done with what they use."""

    missing: int


@dataclass(frozen=True)
class Never:
    """A model does not fit beside what never goes."""

    missing: int


Decision: TypeAlias = Grant | Wait | Never


class Ledger:
    """The models that the engine knows, in memory or not."""

    def __init__(self, budget: Callable[[Hashable], int]) -> None:
        self.budget = budget  # bytes of a device
        self.entries: list[LedgerEntry] = []

    def at(self, home: Hashable) -> list[LedgerEntry]:
        """Return the entries that take something of a device, or of one of a place's devices."""
        return [entry for entry in self.entries if entry.state is not State.ABSENT and meet(entry.home, home)]

    def used(self, home: Hashable) -> int:
        """Bytes that are taken of a device; of several no less than of the fullest."""
        return sum(entry.nbytes for entry in self.at(home))

    def kv_room(self, entry: LedgerEntry) -> int:
        """Bytes that a model's conversations may take together, beside all else. The smallest one always fits."""
        others = sum(other.nbytes for other in self.at(entry.home) if other is not entry)
        return max(entry.floor, self.budget(entry.home) - others - entry.weights - entry.encoders - entry.workspace)

    def can_load(self, entry: LedgerEntry, now: float) -> Decision:
        """What has to happen before a model is loaded. Changes nothing."""
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
        """The models to evict so that so many bytes come free. None: there are not enough that may go."""
        found = self._free(missing, [entry for entry in self.at(home) if entry is not but], now, idle_kv=False)
        return None if found is None else found.evict

    def reserve(self, entry: LedgerEntry) -> None:
        """Take the bytes of a model that will be loaded now."""
        entry.state = State.LOADING

    def settle(self, entry: LedgerEntry, conversations: TakesKv, now: float, seconds: float) -> None:
        """Note that a model is there, where its conversations will be, and how long loading it took."""
        entry.state, entry.last_used, entry.load_s, entry.conversations = State.RESIDENT, now, seconds, conversations
        entry.guarded_until = now + min(seconds, GUARD_SECONDS)

    def note_running(self, running: Iterable[LedgerEntry], now: float) -> None:
        """Note which models requests run on: one entry for each request."""
        for entry in self.entries:
            entry.running = 0
        for entry in running:
            entry.running += 1
        for entry in self.entries:
            if entry.running:
                entry.last_used, entry.guarded_until = now, 0.0

    def expired(self, now: float) -> list[LedgerEntry]:
        """Return the idle entries whose time is up. One in use is left for later."""
        return [entry for entry in self.entries if entry.idle and _time_left(entry, now) <= 0]

    def next_change(self, now: float) -> float | None:
        """Seconds until somebody's time is up; None: never, unless something else happens."""
        times = []
        for entry in self.entries:
            if entry.idle:
                if entry.guarded_until > now:
                    times.append(entry.guarded_until - now)
                if (left := _time_left(entry, now)) < float("inf"):
                    times.append(max(0.0, left))
        return min(times, default=None)

    def _free(self, missing: int, others: list[LedgerEntry], now: float, *, idle_kv: bool = True) -> Grant | None:
        """Idle conversations go before a model does; but only if that is enough, or what is left goes too."""
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
        # A small one that went first may not be needed, where a large one had to follow.
        for victim in list(reversed(victims)):
            left = victim.idle_kv if idle_kv else 0
            if missing + victim.nbytes <= spare + left:
                victims.remove(victim)
                missing, spare = missing + victim.nbytes, spare + left
        return Grant(tuple(victims), max(0, missing))


def _time_left(entry: LedgerEntry, now: float) -> float:
    """Seconds that it may stay unused."""
    if entry.leaving:
        return 0.0
    if entry.keep_alive is None:
        return float("inf")
    return max(entry.last_used + entry.keep_alive, entry.guarded_until) - now
