"""Conversations that outlive the process: idle ones are written to disk, and read back if that is faster than prefill.

For the owner thread, which only makes copies and receives arrays: files are written, read and verified in the
background. A request waits while its beginning is being read, and other requests go on.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from langchain_gemma_jax.engine.conversations.disk_arrays import (
    WhatToWrite,
    as_pages,
    copied_blocks,
    global_dtype,
    global_layers,
    what_to_write,
)
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.transfer_costs import FetchCosts
from langchain_gemma_jax.engine.device.page_door import Content
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.prefix_store.prefix_file import Mark, PrefixHeader
from langchain_gemma_jax.engine.prefix_store.prefix_peers import OfferedPrefixes
from langchain_gemma_jax.engine.prefix_store.prefix_store import ModelPrefixes, PrefixStore
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import PrefixArrays, StoredPrefix, StoredPrefixes
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)

WORTH_IT = 64  # tokens: for fewer, the disk is not used
IDLE_SECONDS = 5.0  # from a turn's end until it is written: agents continue sooner than people
LOOK_SECONDS = 0.05  # between two checks for idle conversations
PEER_SECONDS = 0.5  # for which a request waits for other replicas, or longer if it would take long to read the tokens
PEER_SHARE = 0.25  # of the time to read its tokens: for which a request waits for others to say what they have


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a context, in host memory, in pages."""

    way: _Way
    keys: array[int]
    whole: list[Content]
    local: dict[int, Content]
    seconds: float

    @property
    def length(self) -> int:
        return self.way.stored.mark.length


@dataclass(frozen=True)
class _Asked:
    """The read that a request waits for. None: it does not wait any more."""

    future: Future[Any] | None
    looks: bool = False  # it lists the files: after it, the read is chosen
    until: float | None = None  # by ``time.monotonic``: it does not wait longer for other replicas

    @property
    def over(self) -> bool:
        """True if there is nothing to wait for, or not any more."""
        late = self.until is not None and time.monotonic() >= self.until
        return self.future is None or self.future.done() or late


@dataclass(frozen=True)
class _Way:
    """A prefix that a request can begin with: how it is fetched, and at what cost."""

    stored: StoredPrefix
    costs: FetchCosts
    fetch: Callable[[], PrefixArrays | None]
    reject: Callable[[], None]  # if what was fetched cannot be used
    by_peer: bool = False


_NOTHING = _Asked(None)


class DiskStore:
    """One model's conversations on the disk."""

    def __init__(
        self,
        store: PrefixStore,
        there_is: ModelPrefixes,
        held: KvHoldings,
        label: str,
        costs: FetchCosts,
        peer_costs: FetchCosts,
        host_store: HostStore,
    ) -> None:
        """``there_is`` lists this model's prefixes on disk; ``host_store`` has the measured cost of prefill."""
        self._peer_costs = peer_costs
        self._store, self._there_is, self._held, self._label = store, there_is, held, label
        self._costs, self._host_store = costs, host_store
        self._asked: WeakKeyDictionary[Request, _Asked] = WeakKeyDictionary()
        self._refreshing: Future[None] | None = None
        self._reading: dict[bytes, Future[Beginning | None]] = {}
        self._idle_since: WeakKeyDictionary[Resident, float] = WeakKeyDictionary()
        self._written: WeakKeyDictionary[Resident, tuple[int, str]] = WeakKeyDictionary()  # tokens, and file
        self._stems: WeakKeyDictionary[Resident, int] = (
            WeakKeyDictionary()
        )  # length of the system prompt that was handled
        self._look_at = 0.0

    # Reading.

    def awaits(self, request: Request, have: Callable[[], int]) -> bool:
        """Return True while the beginning of a request's context is being read, so that the request should wait.

        Args:
            request: a request that has not begun.
            have: returns the number of its first tokens that are in memory already.
        """
        asked = self._asked.get(request)
        if asked is None or (asked.looks and asked.over):
            asked = self._asked[request] = self._look_for(request, have(), again=asked is not None)
        return asked.looks or not asked.over

    def arrived(self, request: Request) -> Beginning | None:
        """Return the prefix that was read for a request, once. None: there is none, or it could not be read."""
        asked = self._asked.get(request)
        if asked is None or asked.looks or asked.future is None:
            return None
        self._asked[request] = _NOTHING
        if not asked.future.done():  # another replica is too slow: the tokens are read here
            return None
        self._reading = {digest: each for digest, each in self._reading.items() if not each.done()}
        try:
            found: Beginning | None = asked.future.result()
        except (CancelledError, Exception) as error:  # noqa: BLE001  after any error, the tokens are read again
            _log.warning("a prefix could not be read from the disk: %s", named(error))
            return None
        return found

    def place(self, beginning: Beginning, scope: str) -> Resident:
        """Copy a prefix that was read to the device."""
        held, began, way = self._held, time.perf_counter(), beginning.way
        resident = held.place(Resident(scope, held.paging.slots, beginning.keys), beginning.whole, beginning.local)
        took = beginning.seconds + time.perf_counter() - began
        way.costs.measured.add(took, way.stored.nbytes)
        self._store.folder.files.count(
            prefixes_read=1,
            prefix_tokens_read=beginning.length,
            prefix_bytes_read=way.stored.nbytes,
            prefixes_from_peers=way.by_peer,
        )
        if not way.by_peer:  # what came from another replica is kept here too
            self._written[resident] = (beginning.length, "")
        return resident

    def _look_for(self, request: Request, have: int, *, again: bool) -> _Asked:
        """Return what to wait for: first the list of files, then the read of one."""
        keys = request.keys()
        if len(keys) - 1 - have < WORTH_IT:
            return _NOTHING
        if not self._there_is.first_look.done():
            return _Asked(self._there_is.first_look, looks=True)
        if (prefixes := self._there_is.prefixes) is None:
            return _NOTHING
        offered, now = self._there_is.offered, time.monotonic()
        if not again and not (prefixes.fresh and (offered is None or offered.fresh)):
            if self._refreshing is None or self._refreshing.done():
                self._refreshing = self._store.reader.submit(partial(_refresh, prefixes, offered))
            read = (self._host_store.read.seconds(len(keys)) or 0.0) * PEER_SHARE
            return _Asked(
                self._refreshing, looks=True, until=None if offered is None else now + max(PEER_SECONDS, read)
            )
        way = self._best_way(prefixes, offered, request.asked.scope, keys, have)
        if way is None:
            return _NOTHING
        digest = way.stored.mark.digest
        if (future := self._reading.get(digest)) is None:
            ids = array("i", request.progress.context)
            future = self._reading[digest] = self._store.reader.submit(partial(self._read_beginning, way, keys, ids))
        if not way.by_peer:
            return _Asked(future)
        return _Asked(future, until=now + max(PEER_SECONDS, self._token_seconds(way.stored) * way.stored.mark.length))

    def _best_way(
        self, prefixes: StoredPrefixes, offered: OfferedPrefixes | None, scope: str, keys: array[int], have: int
    ) -> _Way | None:
        """Return the way to the soonest first token. None: reading the tokens is faster."""
        ways, least = [], have + WORTH_IT - 1
        if (stored := prefixes.find(scope, keys, least)) is not None:
            fetch, reject = partial(prefixes.read, stored), partial(prefixes.reject, stored)
            ways.append(_Way(stored, self._costs, fetch, reject))
        if offered is not None and (found := offered.find(scope, keys, least)) is not None:
            stored, most = found.stored, self._token_seconds(found.stored) * found.stored.mark.length
            fetch, reject = partial(offered.read, found, most), partial(offered.refuse, found)
            ways.append(_Way(stored, self._peer_costs, fetch, reject, by_peer=True))
        ways = [way for way in ways if self._is_faster(way, way.stored.mark.length - have)]
        return min(ways, key=lambda way: self._seconds(way, len(keys)), default=None)

    def _is_faster(self, way: _Way, tokens: int) -> bool:
        return way.costs.worth_fetching(way.stored.nbytes, tokens, self._host_store.read, way.stored.header.seconds)

    def _seconds(self, way: _Way, tokens: int) -> float:
        """Return the estimated seconds for a prefix to be fetched, and the rest of so many tokens to be read."""
        rest = self._token_seconds(way.stored) * (tokens - way.stored.mark.length)
        return way.costs.seconds(way.stored.nbytes) + rest

    def _token_seconds(self, stored: StoredPrefix) -> float:
        """Return the seconds to read a token: as measured here, or as the writer of a prefix did."""
        return self._host_store.read.seconds(1) or stored.header.seconds

    # In a background thread.

    def _read_beginning(self, way: _Way, keys: array[int], ids: array[int]) -> Beginning | None:
        if (arrays := way.fetch()) is None:
            return None
        began, length = time.perf_counter(), way.stored.mark.length
        shape = self._held.shape
        pages = as_pages(arrays, shape.layout, self._held.paging, shape.recipe.kv_dtype, ids)
        if pages is None:
            way.reject()
            return None
        return Beginning(way, keys[:length], *pages, arrays.seconds + time.perf_counter() - began)

    # Writing.

    def is_idle(self, resident: Resident) -> None:
        """Note that a conversation is idle from now on."""
        self._idle_since[resident] = time.monotonic()

    def save_idle(self, now: float) -> float | None:
        """Begin to write one idle conversation, if it is due. Return the seconds until the next may be due.

        ``now``: by ``time.monotonic``.
        """
        if not self._idle_since:
            return None
        if now < self._look_at:
            return self._look_at - now
        self._look_at = now + LOOK_SECONDS
        prefixes = self._there_is.prefixes
        if self._there_is.never or (prefixes is not None and not prefixes.writes):
            self._idle_since.clear()
            return None
        if prefixes is None or not self._store.idle:
            return LOOK_SECONDS
        waits = []
        for resident, since in list(self._idle_since.items()):
            left = since + IDLE_SECONDS - now
            if resident.leased or resident not in self._held.index:
                plan, left = None, 0.0
            else:
                plan = self._plan(prefixes, resident, whole=left <= 0)
            if plan is None and left <= 0:
                self._idle_since.pop(resident, None)
            elif plan is None:
                waits.append(left)
            else:
                self._copy_and_write(prefixes, plan)
                return LOOK_SECONDS
        return min(waits, default=None)

    def save_leaving(self, resident: Resident) -> None:
        """Write a conversation that is about to leave the device, unless it is on disk already."""
        prefixes = self._there_is.prefixes
        if prefixes is None or not prefixes.writes:
            return
        while (plan := self._plan(prefixes, resident, whole=True)) is not None:  # the system prompt, then the whole
            try:
                blocks = copied_blocks(plan, self._held)
            except Exception as error:  # noqa: BLE001  such as full host memory: it can be read again
                _log.warning("a conversation of %d tokens could not be kept on the disk: %s", plan.length, named(error))
                return
            if not self._write(prefixes, plan, lambda blocks=blocks: blocks):
                return

    def _plan(self, prefixes: StoredPrefixes, resident: Resident, *, whole: bool) -> WhatToWrite | None:
        """Plan the next write of a conversation: its system prompt, if that is not on disk, or all of it, or None."""
        system, total = resident.system, len(resident.keys)
        if WORTH_IT <= system <= total and self._stems.get(resident) != system:
            known = prefixes.has(resident.scope, resident.keys, system)
            if not known and (plan := self._worth_writing(resident, system)) is not None:
                return plan
            self._stems[resident] = system
        if not whole or total - self._written.get(resident, (system, ""))[0] < WORTH_IT:
            return None
        return None if prefixes.has(resident.scope, resident.keys, total) else self._worth_writing(resident, total)

    def _worth_writing(self, resident: Resident, length: int) -> WhatToWrite | None:
        plan = what_to_write(self._held, resident, length, WORTH_IT)
        worth = plan is not None and self._costs.worth_keeping(plan.nbytes, length, self._host_store.read)
        return plan if worth else None

    def _copy_and_write(self, prefixes: StoredPrefixes, plan: WhatToWrite) -> None:
        """Copy a conversation to the host. The background writes the copy."""
        self._held.device.asked_by = ()
        try:
            blocks = copied_blocks(plan, self._held)
        except Exception as error:  # noqa: BLE001  such as full memory, which is no reason to fail
            self._idle_since.pop(plan.resident, None)
            _log.warning("a conversation of %d tokens could not be copied for the disk: %s", plan.length, named(error))
            return
        self._write(prefixes, plan, lambda: blocks)

    def _write(self, prefixes: StoredPrefixes, plan: WhatToWrite, blocks: Any) -> bool:
        resident = plan.resident
        scope, keys, names = resident.scope, resident.keys[: plan.length], prefixes.names
        _, old = self._written.get(resident, (0, ""))
        whole = plan.length == len(resident.keys) and plan.length != resident.system
        if whole:
            self._written[resident] = (plan.length, names.file(names.digest(scope, keys, plan.length)))
        elif plan.length == resident.system:
            self._stems[resident] = plan.length  # even if it fails, it is not tried again
        seconds = self._host_store.read.seconds(1) or 0.0
        kv_dtype, label = self._held.shape.recipe.kv_dtype, self._label

        def write() -> None:
            try:
                arrays = blocks()
                lengths = sorted({mark[0] for mark in plan.marks})
                digests = dict(names.digests(scope, keys, lengths))
                header = PrefixHeader(
                    family=names.family,
                    label=label,
                    seconds=seconds,
                    tokens=plan.length,
                    dtype=kv_dtype,
                    marks=tuple(Mark(digests[at], at, state) for at, state in plan.marks),
                    shapes=tuple(each.shape for each in arrays),
                    globals=2 * len(global_layers(self._held)),
                    global_dtype=global_dtype(self._held.shape.layout),
                )
                if prefixes.write(header, arrays) and whole and old:
                    prefixes.forget(old)  # the new file continues it
            except Exception as error:  # noqa: BLE001  the arrays may have been deleted: it can be read again
                _log.warning("a conversation could not be written to the disk: %s", named(error))

        return self._store.write(write, plan.nbytes)


def _refresh(prefixes: StoredPrefixes, offered: OfferedPrefixes | None) -> None:
    """List the files on the disk, and what other replicas offer."""
    prefixes.refresh()
    if offered is not None:
        offered.refresh()
