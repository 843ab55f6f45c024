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
    global_layers,
    what_to_write,
)
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.transfer_costs import DiskCosts
from langchain_gemma_jax.engine.device.page_door import Content
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.prefix_store.prefix_file import Mark, PrefixHeader
from langchain_gemma_jax.engine.prefix_store.prefix_store import ModelPrefixes, PrefixStore
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefix, StoredPrefixes
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)

WORTH_IT = 64  # tokens: for fewer, the disk is not used
IDLE_SECONDS = 5.0  # from a turn's end until it is written: agents continue sooner than people
LOOK_SECONDS = 0.05  # between two checks for idle conversations


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a context, in host memory, in pages."""

    stored: StoredPrefix
    keys: array[int]
    whole: list[Content]
    local: dict[int, Content]
    seconds: float

    @property
    def length(self) -> int:
        return self.stored.mark.length


@dataclass(frozen=True)
class _Asked:
    """The read that a request waits for. None: it does not wait any more."""

    future: Future[Any] | None
    looks: bool = False  # it lists the files: after it, the read is chosen


_NOTHING = _Asked(None)


class DiskStore:
    """One model's conversations on the disk."""

    def __init__(
        self,
        store: PrefixStore,
        there_is: ModelPrefixes,
        held: KvHoldings,
        label: str,
        costs: DiskCosts,
        host_store: HostStore,
    ) -> None:
        """``there_is`` lists this model's prefixes on disk; ``host_store`` has the measured cost of prefill."""
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
        if asked is None or (asked.looks and (asked.future is None or asked.future.done())):
            asked = self._asked[request] = self._look_for(request, have(), again=asked is not None)
        return asked.looks or (asked.future is not None and not asked.future.done())

    def arrived(self, request: Request) -> Beginning | None:
        """Return the prefix that was read for a request, once. None: there is none, or it could not be read."""
        asked = self._asked.get(request)
        if asked is None or asked.looks or asked.future is None or not asked.future.done():
            return None
        self._asked[request] = _NOTHING
        self._reading = {digest: each for digest, each in self._reading.items() if not each.done()}
        try:
            found: Beginning | None = asked.future.result()
        except (CancelledError, Exception) as error:  # noqa: BLE001  after any error, the tokens are read again
            _log.warning("a prefix could not be read from the disk: %s", named(error))
            return None
        return found

    def place(self, found: Beginning, scope: str) -> Resident:
        """Copy a prefix that was read to the device."""
        held, began = self._held, time.perf_counter()
        resident = held.place(Resident(scope, held.paging.slots, found.keys), found.whole, found.local)
        took = found.seconds + time.perf_counter() - began
        self._costs.from_disk.add(took, found.stored.nbytes)
        self._store.folder.files.count(
            prefixes_read=1, prefix_tokens_read=found.length, prefix_bytes_read=found.stored.nbytes
        )
        self._written[resident] = (found.length, "")
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
        if not prefixes.fresh and not again:
            if self._refreshing is None or self._refreshing.done():
                self._refreshing = self._store.reader.submit(prefixes.refresh)
            return _Asked(self._refreshing, looks=True)
        stored = prefixes.find(request.asked.scope, keys, have + WORTH_IT - 1)
        if stored is None or not self._is_faster(stored, stored.mark.length - have):
            return _NOTHING
        if (future := self._reading.get(stored.mark.digest)) is None:
            ids = array("i", request.progress.context)
            read = partial(self._read_beginning, prefixes, stored, keys, ids)
            future = self._reading[stored.mark.digest] = self._store.reader.submit(read)
        return _Asked(future)

    def _is_faster(self, stored: StoredPrefix, tokens: int) -> bool:
        return self._costs.worth_fetching(stored.nbytes, tokens, self._host_store.read, stored.header.seconds)

    # In a background thread.

    def _read_beginning(
        self, prefixes: StoredPrefixes, stored: StoredPrefix, keys: array[int], ids: array[int]
    ) -> Beginning | None:
        if (arrays := prefixes.read(stored)) is None:
            return None
        began, length = time.perf_counter(), stored.mark.length
        shape = self._held.shape
        pages = as_pages(arrays, shape.layout, self._held.paging, shape.recipe.kv_dtype, ids)
        if pages is None:
            prefixes.reject(stored)
            return None
        return Beginning(stored, keys[:length], *pages, arrays.seconds + time.perf_counter() - began)

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
                )
                if prefixes.write(header, arrays) and whole and old:
                    prefixes.forget(old)  # the new file continues it
            except Exception as error:  # noqa: BLE001  the arrays may have been deleted: it can be read again
                _log.warning("a conversation could not be written to the disk: %s", named(error))

        return self._store.write(write, plan.nbytes)
