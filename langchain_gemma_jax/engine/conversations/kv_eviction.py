"""The eviction policy for keys and values, when bytes run short.

Least recently used first, in this order: snapshots beyond what a resident may keep, conversations,
system prompts. A conversation whose system prompt no other conversation holds is cut to that rather than
dropped. A scope that uses more than its share is evicted from before any other. A running request's conversation is
never touched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot
from langchain_gemma_jax.errors import InputError


@dataclass(frozen=True)
class EvictionPolicy:
    """The limits by which bytes are divided."""

    budget: int
    scope_share: float = 1.0  # of the budget: a scope that uses more is evicted from first
    stem_share: float = 0.5  # of the budget: system prompts beyond it are evicted like conversations
    max_snapshots: int = 8  # of a resident, in addition to the one of its system prompt

    def __post_init__(self) -> None:
        for name, share in (("scope_share", self.scope_share), ("stem_share", self.stem_share)):
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share of the budget, from 0 to 1: found {share}")
        if self.budget < 0 or self.max_snapshots < 0:
            raise InputError(f"a budget and a number of snapshots are 0 or more: found {self}")


@dataclass(frozen=True)
class Drop:
    """Drop the resident and its snapshots."""

    resident: Resident
    freed: int


@dataclass(frozen=True)
class DropSnapshot:
    """Drop one snapshot of a resident."""

    resident: Resident
    snapshot: Snapshot
    freed: int  # 0 unless it is the last one that shares the arrays


@dataclass(frozen=True)
class Shrink:
    """Keep only the first ``keep`` tokens, at the capacity that they need."""

    resident: Resident
    keep: int
    snapshot: Snapshot | None  # the rings to keep; None: its own
    freed: int


Action: TypeAlias = Drop | DropSnapshot | Shrink


def to_free(
    index: PrefixIndex,
    bytes_needed: int,
    *,
    policy: EvictionPolicy,
    capacity_bytes: Callable[[int], int],
    asking: str | None = None,
    asked: int = 0,
) -> list[Action]:
    """Return the actions, in order, that free this number of bytes, or as many as possible. This changes nothing.

    The sum of the freed bytes is exact. Of several residents that share a snapshot, any may be the one that frees it.

    Args:
        index: The residents.
        bytes_needed: The number of missing bytes.
        policy: The limits by which bytes are divided.
        capacity_bytes: Returns the bytes of a resident with a number of tokens.
        asking: The scope that the bytes are for: ...
        asked: ... its share is computed with this number of bytes added.
    """
    books = _Books(index, bytes_needed, policy, capacity_bytes)
    if asking is not None:
        books.used[asking] += asked
    for from_the_greedy in (True, False):
        for step in (books.drop_surplus, books.reduce, books.drop):
            for resident in books.idle:
                if books.enough:
                    return books.actions
                if not from_the_greedy or books.used[resident.scope] > policy.scope_share * policy.budget:
                    step(resident)
    return books.actions


class _Books:
    """The state of the residents after the actions so far."""

    def __init__(
        self, index: PrefixIndex, needed: int, policy: EvictionPolicy, capacity_bytes: Callable[[int], int]
    ) -> None:
        self.rings, self.needed, self.policy, self.capacity_bytes = index.rings, needed, policy, capacity_bytes
        self.actions: list[Action] = []
        self.freed = 0
        self.used = Counter(index.nbytes_by_scope())
        self.kept = {resident: list(resident.snapshots) for resident in index.residents}  # the remaining ones
        self.stems: dict[Resident, Shrink] = {}  # those cut so far
        self.idle = sorted((r for r in self.kept if not r.leased), key=lambda r: r.last_used)
        self.shared = Counter(id(snapshot.handle) for kept in self.kept.values() for snapshot in kept)
        self.protected = self._protected()

    @property
    def enough(self) -> bool:
        return self.freed >= self.needed

    def drop_surplus(self, resident: Resident) -> None:
        """Drop the oldest snapshots of a resident beyond the most that it may keep."""
        for snapshot in self._surplus(resident) if resident in self.kept else ():
            if self.enough:
                return
            self.kept[resident].remove(snapshot)
            self._do(DropSnapshot(resident, snapshot, self._release([snapshot])))

    def reduce(self, resident: Resident) -> None:
        """Drop a conversation, or cut it to its system prompt if no other remaining one holds that."""
        if resident not in self.kept or resident in self.stems:
            return
        reached, snapshot = self._system(resident)
        if not reached or self._held_by_another(resident):
            self.drop(resident)
        elif self._is_no_more_than_its_system_prompt(resident):
            if resident not in self.protected:
                self.drop(resident)
        else:
            before = self.kept[resident]
            after = self.rings.carried(before, resident.system)
            self.kept[resident] = after
            saved = resident.nbytes - self.capacity_bytes(resident.system)
            # A snapshot that stays may be a new object with the same arrays.
            left = {id(kept.handle) for kept in after}
            freed = saved + self._release([gone for gone in before if id(gone.handle) not in left])
            action = Shrink(resident, resident.system, snapshot, freed)
            self.stems[resident] = action
            self._do(action)

    def drop(self, resident: Resident) -> None:
        if resident not in self.kept:
            return
        freed = self._release(self.kept.pop(resident))
        cut = self.stems.pop(resident, None)
        if cut is None:
            self._do(Drop(resident, resident.nbytes + freed))
        else:  # no need to cut it first
            self.actions.remove(cut)
            self._do(Drop(resident, cut.freed + self.capacity_bytes(cut.keep) + freed), already=cut.freed)

    def _do(self, action: Action, already: int = 0) -> None:
        self.actions.append(action)
        self.freed += action.freed - already
        self.used[action.resident.scope] -= action.freed - already

    def _release(self, snapshots: Iterable[Snapshot]) -> int:
        """Return the bytes freed when a resident drops these snapshots: those that no other resident shares."""
        freed = 0
        for snapshot in snapshots:
            self.shared[id(snapshot.handle)] -= 1
            freed += 0 if self.shared[id(snapshot.handle)] else snapshot.nbytes
        return freed

    def _system(self, resident: Resident) -> tuple[bool, Snapshot | None]:
        """Return True if its system prompt can be continued from, and the snapshot to restore for that."""
        end, system = len(resident.keys), resident.system
        length, snapshot = self.rings.reach(end, resident.written, self.kept[resident], system)
        return 0 < length == system, snapshot

    def _surplus(self, resident: Resident) -> list[Snapshot]:
        # The same length can be reached as long as this snapshot is kept, without the others.
        system = self._system(resident)[1]
        others = [s for s in self.kept[resident] if system is None or s.handle is not system.handle]
        return others[: max(len(others) - self.policy.max_snapshots, 0)]

    def _held_by_another(self, resident: Resident) -> bool:
        # The other must have it as its system prompt, or it would not be kept when that one is evicted.
        system = resident.system
        keys = resident.keys[:system]
        return any(
            other is not resident
            and (other.scope, other.system) == (resident.scope, system)
            and (other in self.stems or self._system(other)[0])
            and other.keys[:system] == keys
            for other in self.kept
        )

    def _is_no_more_than_its_system_prompt(self, resident: Resident) -> bool:
        bare = len(resident.keys) <= resident.system
        return bare or self.capacity_bytes(resident.system) >= resident.nbytes  # cutting would save nothing

    def _protected(self) -> set[Resident]:
        """Return the system prompts to keep longer than conversations: the last used, up to their share, at least one.

        Without a limit, prompts with a date or a name, each used once, would push out every conversation.
        """
        protected: set[Resident] = set()
        total = 0
        for resident in reversed(self.idle):
            if self._system(resident)[0] and self._is_no_more_than_its_system_prompt(resident):
                total += resident.nbytes
                if protected and total > self.policy.stem_share * self.policy.budget:
                    break
                protected.add(resident)
        return protected
