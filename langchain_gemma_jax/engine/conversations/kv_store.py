"""``KvStore``: gives each request a conversation with as much reused KV as possible, and evicts idle ones.

Only the owner thread runs this code.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from langchain_gemma_jax.engine.conversations import kv_eviction
from langchain_gemma_jax.engine.conversations.disk_store import DiskStore
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.kv_eviction import Drop, DropSnapshot, EvictionPolicy
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.prefix_index import Reuse
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)

WORTH_A_COPY = 16  # common tokens: fewer are faster read again than copied
HEADROOM = 64  # tokens that a new conversation can grow by before its cache must grow


class Budget(Protocol):
    """The memory that a model's conversations may take on a device that they share with others."""

    def room(self) -> int:
        """Return the bytes that all of the model's conversations may take."""
        ...

    def more(self, missing: int) -> None:
        """Evict unused models, if that frees this number of bytes."""
        ...

    def others(self) -> list[KvStore]:
        """Return the conversations of the other models on the device, which share the budget."""
        ...

    def gave_up(self, what: str, reason: str, nbytes: int, seconds: float) -> None:
        """Log that conversations were evicted."""
        ...


class KvStore:
    """The conversations of one model."""

    def __init__(
        self,
        held: KvHoldings,
        policy: EvictionPolicy,
        shared: Budget,
        host_store: HostStore,
        disk_store: DiskStore | None = None,
    ) -> None:
        self.held, self.index, self.policy, self.shared, self.host_store = held, held.index, policy, shared, host_store
        self.disk_store = disk_store

    # Requests.

    def plan(self, request: Request) -> Reuse:
        """Return the part of a request's context that is on the device. An admission needs one plan."""
        return self.index.plan(request.keys(), request.asked.scope)

    def awaits(self, request: Request, reuse: Reuse) -> bool:
        """Return True while the beginning of a request's context is being read from disk. Other requests may go on."""
        if self.disk_store is None:
            return False

        def have() -> int:
            return max(reuse.length, self.host_store.reach(request.keys(), request.asked.scope, self.index.rings))

        return self.disk_store.awaits(request, self._wanted(request), have)

    def take(self, request: Request, reuse: Reuse) -> bool:
        """Give a request a conversation with as much of its context as is kept. False: there is no room now.

        ``reuse``: the plan. It is made anew if anything came or went since, such as to make room for encoders.
        """
        asked, progress = request.asked, request.progress
        reuse = self._bring_back(request, self.index.renewed(reuse, request.keys(), asked.scope))
        wanted = self._wanted(request)
        resident = self._take_over(reuse, wanted, asked.scope) or self._start(reuse, wanted, asked.scope)
        if resident is None:
            return False
        if reuse.lost:
            _log.info("request %d: %s", asked.number, reuse.lost)
        resident.leased = True
        resident.system = max(resident.system, min(asked.system, len(progress.context)))
        request.on_device.resident = resident
        if progress.started_at is None:  # a request that begins again may find tokens of its own
            progress.reused = len(resident.keys)
        if resident.written > (self.index.rings.size or 0):
            self.keep(resident)  # the turn before ended here
        return True

    def grow(self, resident: Resident, tokens: int) -> bool:
        """Grow a conversation to hold this number of tokens. False: there is no room."""
        capacity = self.held.ladders.capacity(tokens)
        if capacity <= resident.capacity:
            return True
        if not self._make_room(self.held.bytes_for(capacity), resident.scope):
            return False
        self.held.resize(resident, capacity)
        return True

    def fits_alone(self, tokens: int) -> bool:
        """Return True if a conversation with this number of tokens fits when all others of the model are dropped."""
        size = self.held.bytes_for(self.held.ladders.capacity(tokens))
        return self._used_elsewhere() + size <= self.policy.budget and size <= self.shared.room()

    def keep(self, resident: Resident) -> None:
        """Keep a snapshot of the rings, so that the conversation can be continued from this point later."""
        rings = self.index.rings
        end = len(resident.keys)
        if rings.size is None or not end or any(kept.end == end for kept in resident.snapshots):
            return
        size = self.held.snapshot_bytes(resident.capacity)
        surplus = len(resident.snapshots) + 1 - self.policy.max_snapshots
        if self.policy.max_snapshots == 0 or not self._make_room(size, resident.scope):
            return
        # The first snapshot is for the system prompt; of the others the oldest is dropped.
        for old in resident.snapshots[1 : 1 + max(0, surplus)]:
            self.index.drop_snapshot(resident, old)
        self.held.keep_rings(resident, size)

    def must_keep_before(self, resident: Resident, tokens: int) -> bool:
        """Return True if writing this number of tokens would, for the first time, overwrite the rings' beginning."""
        rings = self.index.rings
        if rings.size is None or resident.written > rings.size:
            return False
        return len(resident.keys) + tokens > rings.size and not any(
            kept.end == len(resident.keys) for kept in resident.snapshots
        )

    def release(self, request: Request) -> None:
        """Release the conversation of a request that is over or starts again. It stays until its bytes are needed."""
        if (resident := request.on_device.resident) is not None:
            resident.leased = False
            request.on_device.resident = None
            if self.disk_store is not None:
                self.disk_store.is_idle(resident)

    def pad(self, capacity: int, rows: int) -> bool:
        """Allocate padding sequences for the unused rows of a step. False: there is no room."""
        held = self.held
        spare = held.padding(capacity)  # taken out, so that making room does not free these
        fits = len(spare) >= rows or self._make_room(rows * held.bytes_for(capacity), None)
        while fits and len(spare) < rows:
            spare.append(held.run(("empty", capacity)))
        held.put_padding(capacity, spare)
        return fits

    # Use of memory, and eviction.

    def evict_idle(self) -> None:
        """Drop everything that no running request owns."""
        for resident in self.index.residents:
            if not resident.leased:
                self.held.drop(resident)
        self.held.drop_padding()
        self.held.changed = True

    def park_all(self) -> None:
        """Park conversations in host memory before the model leaves, if that is worth it, the last used one last."""
        for resident in sorted(self.index.residents, key=lambda r: r.last_used):
            if self.disk_store is not None:
                self.disk_store.save_leaving(resident)
            self.host_store.keep(resident, self.index.rings)

    def save_idle(self, now: float) -> float | None:
        """Begin to write one idle conversation to disk, if it is due. Return the seconds until the next may be due."""
        if self.disk_store is None:
            return None
        return self.disk_store.save_idle(now, -self._missing(0))

    def save_all(self, until: float) -> None:
        """Write idle conversations to disk before the engine ends, the last used first, until the given time."""
        for resident in sorted(self.index.residents, key=lambda r: -r.last_used):
            if self.disk_store is not None and not resident.leased and time.monotonic() < until:
                self.disk_store.save_leaving(resident)

    def _wanted(self, request: Request) -> int:
        """Return the initial capacity of a request's conversation."""
        asked, context = request.asked, request.progress.context
        tokens = min(len(context) + min(request.room, HEADROOM), asked.max_context)
        return self.held.ladders.capacity(tokens)

    def _make_room(self, needed: int, scope: str | None) -> bool:
        """Evict idle conversations, this model's first, and then idle models, until this number of bytes fits."""
        for store in (self, *self.shared.others()):
            if (missing := self._missing(needed)) > 0:
                store.give_up(missing, scope if store is self else None, needed)
        if (missing := self.held.nbytes() + needed - self.shared.room()) > 0:
            self.shared.more(missing)
        return self._missing(needed) <= 0

    def _missing(self, needed: int) -> int:
        """Return the bytes that are missing: to the conversations' budget or to the device's room."""
        held = self.held.nbytes() + needed
        return max(held + self._used_elsewhere() - self.policy.budget, held - self.shared.room())

    def give_up(self, missing: int, scope: str | None = None, needed: int = 0) -> int:
        """Evict idle conversations of this number of bytes, or all of them. Return the number of freed bytes.

        Args:
            missing: the number of bytes.
            scope: the scope that they are for: ...
            needed: ... its share is computed with this number of bytes added.
        """
        before, began, parked = self.held.nbytes(), time.perf_counter(), 0
        for action in kv_eviction.to_free(
            self.index,
            missing,
            policy=self._policy_now(),
            capacity_bytes=lambda tokens: self.held.bytes_for(self.held.ladders.capacity(tokens)),
            asking=scope,
            asked=needed,
        ):
            if isinstance(action, Drop) and self.disk_store is not None:
                self.disk_store.save_leaving(action.resident)
            if not isinstance(action, DropSnapshot):
                parked += self.host_store.keep(action.resident, self.index.rings)
            if isinstance(action, Drop):
                self.held.drop(action.resident)
            elif isinstance(action, DropSnapshot):
                self.index.drop_snapshot(action.resident, action.snapshot)
                self.held.changed = True
            else:
                self._shrink(action)
        if self.held.nbytes() > before - missing:
            self.held.drop_padding()
        freed = before - self.held.nbytes()
        if freed:
            what = "conversations to host memory" if parked else "conversations"
            self.shared.gave_up(
                what,
                "room for another conversation" if needed else "room for a model",
                freed,
                time.perf_counter() - began,
            )
        return freed

    def _policy_now(self) -> EvictionPolicy:
        """Return the policy with the budget limited to the device's room, so that shares are shares of real memory."""
        return replace(self.policy, budget=min(self.policy.budget, self.shared.room()))

    def _bring_back(self, request: Request, reuse: Reuse) -> Reuse:
        """Fetch a conversation from host memory or disk, if that is faster than reading it; return the plan now."""
        keys, scope = request.keys(), request.asked.scope
        found = self.host_store.find(keys, scope, reuse.length, self.index.rings) if self.host_store.nbytes else None
        # Making room may park other conversations in host memory, and evict this one from it.
        if (
            found is not None
            and self._make_room(self.host_store.bytes_back(found), scope)
            and self.host_store.holds(found)
        ):
            self.index.add(self.host_store.fetch(found))
            self.held.changed = True
        reuse = self.index.renewed(reuse, keys, scope)
        read = None if self.disk_store is None else self.disk_store.arrived(request)
        if (
            self.disk_store is not None
            and read is not None
            and read.length > reuse.length
            and self._make_room(self.held.bytes_for(read.capacity), scope)
        ):
            self.disk_store.place(read, scope)
        return self.index.renewed(reuse, keys, scope)

    def _used_elsewhere(self) -> int:
        return sum(store.held.nbytes() for store in self.shared.others())

    def _shrink(self, action: kv_eviction.Shrink) -> None:
        self.held.cut(action.resident, action.keep, action.snapshot)
        self.held.resize(action.resident, self.held.ladders.capacity(action.keep))
        self.held.metrics.evictions += 1

    def _take_over(self, reuse: Reuse, capacity: int, scope: str) -> Resident | None:
        """Return a conversation that reuses the planned one. None: it is not worth it, or there is no room."""
        source = reuse.source
        if source is None or (not reuse.in_place and reuse.length < WORTH_A_COPY):
            return None
        was, source.leased = source.leased, True  # so that it is not evicted to make room
        try:
            if not reuse.in_place and self._make_room(self.held.bytes_for(capacity), scope):
                return self.held.fork(source, reuse, capacity)
            # Without room for a copy, it is better to lose the other branch than to read everything again.
            return source if not was and self._continue(source, reuse, capacity, scope) else None
        finally:
            source.leased = was

    def _start(self, reuse: Reuse, capacity: int, scope: str) -> Resident | None:
        """Return an empty conversation. None: there is no room."""
        if reuse.length >= WORTH_A_COPY and any(resident.leased for resident in self.index.residents):
            return None  # once another request ends, there may be room to reuse the common tokens
        if not self._make_room(self.held.bytes_for(capacity), scope):
            return None
        return self.held.start(scope, capacity)

    def _continue(self, resident: Resident, reuse: Reuse, capacity: int, scope: str) -> bool:
        """Continue in a conversation's own arrays after its first ``reuse.length`` tokens. False: they cannot grow."""
        if capacity > resident.capacity and not self._make_room(self.held.bytes_for(capacity), scope):
            return False
        self.held.cut(resident, reuse.length, reuse.snapshot)
        self.index.touch(resident)
        if capacity > resident.capacity:
            self.held.resize(resident, capacity)
        return True
