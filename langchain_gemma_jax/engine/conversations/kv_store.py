"""``KvStore``: gives each request a conversation with as much reused KV as possible, and evicts idle ones.

Only the owner thread runs this code.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from langchain_gemma_jax.engine.base.pages import PageTotals
from langchain_gemma_jax.engine.conversations import kv_eviction
from langchain_gemma_jax.engine.conversations.disk_store import DiskStore
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.kv_eviction import Drop, EvictionPolicy, ForgetTurn
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.prefix_index import Reuse
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)

WORTH_SHARING = 16  # common tokens: fewer are read again
HEADROOM = 64  # tokens that a new conversation can grow by before it needs more pages


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
            return max(reuse.length, self.host_store.plan(request.keys(), request.asked.scope).length)

        return self.disk_store.awaits(request, have)

    def take(self, request: Request, reuse: Reuse) -> bool:
        """Give a request a conversation with as much of its context as is kept. False: there is no room now.

        ``reuse``: the plan. It is made again if anything came or went since, such as to make room for encoders.
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
        self.keep(resident)  # the turn before ended here
        return True

    def grow(self, resident: Resident, tokens: int) -> bool:
        """Give a conversation the pages to be written up to this number of tokens. False: there is no room."""
        self.held.drop_passed(resident, tokens)
        while not self._make_room(self.held.missing(resident, tokens), resident.scope):
            # No other request has pages to give: it goes on without what is kept for later turns.
            if self._others_run(resident) or not self.held.give_up(resident, tokens):
                return False
        self.held.grow(resident, tokens)
        return True

    def keep(self, resident: Resident) -> None:
        """Keep the window before a conversation's end, so that it can be continued from here later."""
        if self.index.paging.window is None or self.policy.max_snapshots == 0:
            return
        self.index.keep_turn(resident)
        # The first turn is for the system prompt; of the others the oldest is dropped.
        while len(resident.turns) > 1 + self.policy.max_snapshots:
            self.held.forget_turn(resident, resident.turns[1])

    def release(self, request: Request) -> None:
        """Release the conversation of a request that is over or starts again. It stays until its bytes are needed."""
        if (resident := request.on_device.resident) is not None:
            resident.leased = False
            request.on_device.resident = None
            if resident in self.index:
                self.held.trim(resident)
            if self.disk_store is not None:
                self.disk_store.is_idle(resident)
            self._bound_idle()

    # Use of memory, and eviction.

    def evict_idle(self) -> None:
        """Drop everything that no running request owns."""
        for resident in self.index.residents:
            if not resident.leased:
                self.held.drop(resident)
        self.held.give_back()

    def park_all(self) -> None:
        """Park conversations in host memory before the model leaves, if that is worth it, the last used one last."""
        for resident in sorted(self.index.residents, key=lambda r: r.last_used):
            if self.disk_store is not None:
                self.disk_store.save_leaving(resident)
            self.host_store.keep(resident, self.held)

    def save_idle(self, now: float) -> float | None:
        """Begin to write one idle conversation to disk, if it is due. Return the seconds until the next may be due."""
        if self.disk_store is None:
            return None
        return self.disk_store.save_idle(now)

    def save_all(self, until: float) -> None:
        """Write idle conversations to disk before the engine ends, the last used first, until the given time."""
        for resident in sorted(self.index.residents, key=lambda r: -r.last_used):
            if self.disk_store is not None and not resident.leased and time.monotonic() < until:
                self.disk_store.save_leaving(resident)

    def _wanted(self, request: Request) -> int:
        """Return the number of tokens that a request's conversation should have room for at first."""
        asked, context = request.asked, request.progress.context
        return min(len(context) + min(request.room, HEADROOM), asked.max_context)

    def _bound_idle(self) -> None:
        """Evict idle conversations beyond the bytes that these may keep."""
        idle = self.held.nbytes() - self.held.busy()  # without pages that running requests have too
        if (surplus := idle - self.policy.idle) > 0:
            self.give_up(surplus, reason="the bound on idle conversations", parks=self.policy.parks_surplus)

    def _others_run(self, resident: Resident) -> bool:
        return any(other.leased and other is not resident for other in self.index.residents)

    def _make_room(self, pages: PageTotals, scope: str) -> bool:
        """Evict idle conversations, this model's first, and then idle models, until these pages fit."""
        if not (needed := self.held.sizes.of(pages)):
            return True
        for store in (self, *self.shared.others()):
            if (missing := self._missing(needed)) > 0:
                store.give_up(missing, scope if store is self else None, needed)
        if (missing := self.held.nbytes() + needed - self.shared.room()) > 0:
            self.shared.more(missing)
        while (short := self.held.shortage(pages)) and self.give_up(short, scope, needed):
            """What was freed may have been pages of the other kind."""
        return self._missing(needed) <= 0 and not short

    def _missing(self, needed: int) -> int:
        """Return the bytes that are missing: to the conversations' budget or to the device's room."""
        held = self.held.nbytes() + needed
        return max(held + self._used_elsewhere() - self.policy.budget, held - self.shared.room())

    def give_up(
        self, missing: int, scope: str | None = None, needed: int = 0, reason: str = "", *, parks: bool = True
    ) -> int:
        """Evict idle conversations of this number of bytes, or all of them. Return the number of freed bytes.

        Args:
            missing: the number of bytes.
            scope: the scope that they are for: ...
            needed: ... its share is computed with this number of bytes added.
            reason: for the log.
            parks: they may be parked in host memory.
        """
        before, began, parked, policy = self.held.nbytes(), time.perf_counter(), 0, self._policy_now()
        while self.held.nbytes() > before - missing:
            action = kv_eviction.next_to_go(self.index, policy, scope, needed)
            if action is None:
                break
            resident = action.resident
            if isinstance(action, ForgetTurn):
                self.held.forget_turn(resident, action.turn)
                continue
            if isinstance(action, Drop) and self.disk_store is not None:
                self.disk_store.save_leaving(resident)
            parked += parks and self.host_store.keep(resident, self.held)
            if isinstance(action, Drop):
                self.held.drop(resident)
            else:
                self.held.cut(resident, action.keep)
                self.held.metrics.evictions += 1
        if freed := before - self.held.nbytes():
            self.held.give_back()
            what = "conversations to host memory" if parked else "conversations"
            reason = reason or ("room for another conversation" if needed else "room for a model")
            self.shared.gave_up(what, reason, freed, time.perf_counter() - began)
        return freed

    def _policy_now(self) -> EvictionPolicy:
        """Return the policy with the budget limited to the device's room, so that shares are shares of real memory."""
        return replace(self.policy, budget=min(self.policy.budget, self.shared.room()))

    def _bring_back(self, request: Request, reuse: Reuse) -> Reuse:
        """Fetch a conversation from host memory or disk, if that is faster than reading it; return the plan now."""
        keys, scope = request.keys(), request.asked.scope
        found = self.host_store.find(keys, scope, reuse.length) if self.host_store.nbytes else None
        # Making room may park other conversations in host memory, and evict this one from it.
        if (
            found is not None
            and self._make_room(PageTotals(len(found.whole), len(found.local)), scope)
            and found in self.host_store
        ):
            self.host_store.fetch(found, self.held)
        reuse = self.index.renewed(reuse, keys, scope)
        read = None if self.disk_store is None else self.disk_store.arrived(request)
        if (
            self.disk_store is not None
            and read is not None
            and read.length > reuse.length
            and self._make_room(self.held.paging.totals(read.length), scope)
        ):
            self.disk_store.place(read, scope)
        return self.index.renewed(reuse, keys, scope)

    def _used_elsewhere(self) -> int:
        return sum(store.held.nbytes() for store in self.shared.others())

    def _take_over(self, reuse: Reuse, tokens: int, scope: str) -> Resident | None:
        """Return a conversation that reuses the planned one. None: it is not worth it, or there is no room."""
        source = reuse.source
        if source is None or (not reuse.in_place and reuse.length < WORTH_SHARING):
            return None
        was, source.leased = source.leased, True  # so that it is not evicted to make room
        try:
            branch = self.held.missing(source, tokens, reuse.length, branch=True)
            if not reuse.in_place and self._make_room(branch, scope):
                return self.held.fork(source, reuse.length)
            # Without room for a branch, it is better to lose the other one than to read everything again.
            return source if not was and self._continue(source, reuse, tokens, scope) else None
        finally:
            source.leased = was

    def _start(self, reuse: Reuse, tokens: int, scope: str) -> Resident | None:
        """Return an empty conversation. None: there is no room."""
        if reuse.length >= WORTH_SHARING and any(resident.leased for resident in self.index.residents):
            return None  # once another request ends, there may be room to reuse the common tokens
        if not self._make_room(self.index.paging.totals(tokens), scope):
            return None
        return self.held.start(scope)

    def _continue(self, resident: Resident, reuse: Reuse, tokens: int, scope: str) -> bool:
        """Continue a conversation itself after its first ``reuse.length`` tokens. False: there is no room."""
        if not self._make_room(self.held.missing(resident, tokens, reuse.length), scope):
            return False
        self.held.cut(resident, reuse.length)
        self.index.touch(resident)
        return True
