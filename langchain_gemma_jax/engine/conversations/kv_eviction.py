"""The eviction policy for keys and values, when bytes run short.

Least recently used first, in this order: windows of earlier turns beyond those that a conversation may keep,
conversations, system prompts. A conversation whose system prompt no other conversation holds is cut to that rather than
dropped. A scope that uses more than its share is evicted from before any other. A running request's conversation is
never touched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.errors import InputError


@dataclass(frozen=True)
class EvictionPolicy:
    """The limits by which bytes are divided."""

    budget: int
    idle: int = sys.maxsize  # the most bytes that idle conversations may keep
    parks_surplus: bool = True  # what is beyond that is parked in host memory: where that is other memory
    scope_share: float = 1.0  # of the budget: a scope that uses more is evicted from first
    stem_share: float = 0.5  # of the budget: system prompts beyond it are evicted like conversations
    max_snapshots: int = 8  # windows of earlier turns of a resident, in addition to the one of its system prompt

    def __post_init__(self) -> None:
        for name, share in (("scope_share", self.scope_share), ("stem_share", self.stem_share)):
            if not 0 <= share <= 1:
                raise InputError(f"{name} is a share of the budget, from 0 to 1: found {share}")
        if self.budget < 0 or self.max_snapshots < 0:
            raise InputError(f"a budget and a number of snapshots are 0 or more: found {self}")


@dataclass(frozen=True)
class Drop:
    """Drop a conversation."""

    resident: Resident


@dataclass(frozen=True)
class ForgetTurn:
    """Drop the window before an earlier length of a conversation."""

    resident: Resident
    turn: int


@dataclass(frozen=True)
class Shrink:
    """Keep only the first ``keep`` tokens of a conversation."""

    resident: Resident
    keep: int


Action: TypeAlias = Drop | ForgetTurn | Shrink


def next_to_go(index: PrefixIndex, policy: EvictionPolicy, asking: str | None = None, asked: int = 0) -> Action | None:
    """Return what goes next. It may free nothing, if all of its pages are shared. None: all is in use, or gone.

    Args:
        index: the residents.
        policy: the limits by which bytes are divided.
        asking: the scope that needs the bytes: ...
        asked: ... its share is computed with this number of bytes added.
    """
    state = _State(index, policy)
    used = index.nbytes_by_scope()
    if asking is not None:
        used[asking] = used.get(asking, 0) + asked
    greedy = [resident for resident in state.idle if used[resident.scope] > policy.scope_share * policy.budget]
    steps: list[Callable[[Resident], Action | None]] = [state.surplus, state.reduced, Drop]
    for residents in (greedy, state.idle):
        for step in steps:
            for resident in residents:
                if (action := step(resident)) is not None:
                    return action
    return None


class _State:
    """The residents now."""

    def __init__(self, index: PrefixIndex, policy: EvictionPolicy) -> None:
        self._index, self._policy = index, policy
        self._residents = index.residents
        self.idle = sorted((r for r in self._residents if not r.leased), key=lambda r: r.last_used)
        self._protected = self._stems()

    def surplus(self, resident: Resident) -> Action | None:
        """Return the oldest of a resident's turns, if it keeps too many."""
        others = [turn for turn in resident.turns if turn != resident.system]
        return ForgetTurn(resident, others[0]) if len(others) > self._policy.max_snapshots else None

    def reduced(self, resident: Resident) -> Action | None:
        """Drop a conversation, or cut it to its system prompt if no other holds that."""
        if not self._has_system(resident) or self._held_by_another(resident):
            return Drop(resident)
        if len(resident.keys) > resident.system:
            return Shrink(resident, resident.system)
        return None if resident in self._protected else Drop(resident)

    def _has_system(self, resident: Resident) -> bool:
        """Return True if a conversation can be continued from its system prompt."""
        return 0 < resident.system == self._index.paging.reach(resident.local, resident.system)

    def _held_by_another(self, resident: Resident) -> bool:
        # The other must have it as its system prompt, or it would not be kept when that one is evicted.
        system = resident.system
        keys = resident.keys[:system]
        return any(
            other is not resident
            and (other.scope, other.system) == (resident.scope, system)
            and self._has_system(other)
            and other.keys[:system] == keys
            for other in self._residents
        )

    def _stems(self) -> set[Resident]:
        """Return the system prompts to keep longer than conversations: the last used, up to their share, at least one.

        Without a limit, prompts with a date or a name, each used once, would push out every conversation.
        """
        protected: set[Resident] = set()
        total = 0
        for resident in reversed(self.idle):
            if self._has_system(resident) and len(resident.keys) <= resident.system:
                total += self._index.bytes_of([resident])
                if protected and total > self._policy.stem_share * self._policy.budget:
                    break
                protected.add(resident)
        return protected
