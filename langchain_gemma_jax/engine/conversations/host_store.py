"""Conversations that are parked in host memory and fetched back, if that is faster than reading them again.

A page in host memory has a name: a digest of the scope and all keys up to its end. Conversations that begin alike have
it once. For the owner thread. The measured times of moving bytes and reading tokens decide.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.pages import Paging
from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse
from langchain_gemma_jax.engine.conversations.transfer_costs import Rate, TransferCosts
from langchain_gemma_jax.engine.device.page_door import Content
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)


@dataclass(frozen=True, eq=False)
class HostPage:
    """What is in a page, in host memory."""

    content: Content = field(repr=False)


class HostStore:
    """One model's conversations in host memory. They stay when its weights leave the device."""

    def __init__(
        self, model: object, parked: HostIndex, costs: TransferCosts, metrics: Metrics, *, parts: int, usable: bool
    ) -> None:
        """``parts``: devices whose parts of a page are kept together. Not ``usable``: some are on other hosts."""
        self.read = Rate()  # seconds to read a token with this model
        self._parts, self._usable = parts, usable
        self._model, self._host_index, self._costs, self._metrics = model, parked, costs, metrics
        self._pages: WeakValueDictionary[bytes, HostPage] = WeakValueDictionary()

    def __contains__(self, parked: Resident) -> bool:
        return parked in self._host_index

    @property
    def nbytes(self) -> int:
        return self._host_index.nbytes(self._model)

    def keep(self, resident: Resident, held: KvHoldings) -> bool:
        """Copy a conversation that is about to leave, if that is worth it. Return True if a copy was kept."""
        size, length = held.index.bytes_of([resident]) * self._parts, len(resident.keys)
        if (
            not self._usable
            or not length
            or size > self._host_index.budget
            or not self._costs.worth_keeping(size, length, self.read)
        ):
            return False
        began = time.perf_counter()
        try:
            whole, local = self._copied(resident, held)
        except Exception as error:  # noqa: BLE001  such as full host memory: it can be read again
            _log.warning("a conversation of %d tokens could not be kept on the host: %s", length, named(error))
            return False
        self._costs.to_host.add(time.perf_counter() - began, size)
        parked = replace(resident, keys=resident.keys[:], whole=list(whole), local=dict(local), leased=False)
        parked.turns = list(resident.turns)
        self._index(held)
        self._host_index.add(self._model, parked)
        self._metrics.parked += 1
        return True

    def find(self, keys: Sequence[int], scope: str, have: int) -> Resident | None:
        """Return a conversation worth fetching for a prompt with ``have`` tokens on the device already, or None."""
        plan = self.plan(keys, scope)
        if plan.source is None:
            return None
        size = self._bytes_of(plan.source)
        return plan.source if self._costs.worth_fetching(size, plan.length - have, self.read) else None

    def plan(self, keys: Sequence[int], scope: str) -> Reuse:
        """Return the part of a prompt that could be reused from here."""
        index = self._host_index.of(self._model)
        return Reuse() if index is None else index.plan(keys, scope)

    def fetch(self, parked: Resident, held: KvHoldings) -> Resident:
        """Move a parked conversation to the device and return it. Host memory no longer has it."""
        began, size = time.perf_counter(), self._bytes_of(parked)
        whole = [page.content for page in parked.whole if isinstance(page, HostPage)]
        local = {number: page.content for number, page in parked.local.items() if isinstance(page, HostPage)}
        found = held.place(replace(parked, whole=[], local={}), whole, local)
        self._costs.to_device.add(time.perf_counter() - began, size)
        self._host_index.take(parked)
        self._metrics.restored += 1
        self._metrics.restored_tokens += len(found.keys)
        return found

    def clear(self) -> None:
        """Drop all conversations, because the weights have changed or are gone for good."""
        self._host_index.forget(self._model)

    def _copied(self, resident: Resident, held: KvHoldings) -> tuple[list[HostPage], dict[int, HostPage]]:
        """Return a conversation's pages in host memory. Those that are there already are not copied again."""
        names = page_names(resident, held.paging)
        wanted = sorted(held.index.wanted(resident) & resident.local.keys())
        known = {
            name: page
            for number, name in enumerate(names)
            for name in (b"w" + name, b"l" + name)
            if (page := self._pages.get(name)) is not None
        }
        whole = [number for number in range(len(names)) if b"w" + names[number] not in known]
        local = [number for number in wanted if b"l" + names[number] not in known]
        of_whole, of_local = held.read(resident, whole, local)
        for kind, numbers, contents in ((b"w", whole, of_whole), (b"l", local, of_local)):
            for number, content in zip(numbers, contents, strict=True):
                known[kind + names[number]] = HostPage(content)
        self._pages.update(known)
        own = {number: known[b"l" + names[number]] for number in wanted}
        return [known[b"w" + name] for name in names], own

    def _bytes_of(self, parked: Resident) -> int:
        index = self._host_index.of(self._model)
        return 0 if index is None else index.bytes_of([parked])

    def _index(self, held: KvHoldings) -> PrefixIndex:
        sizes = replace(held.sizes, whole=held.sizes.whole * self._parts, local=held.sizes.local * self._parts)
        return self._host_index.opened(self._model, held.paging, sizes)


def page_names(resident: Resident, paging: Paging) -> list[bytes]:
    """Return a name for each page of a conversation: what is in it follows from all keys up to its end.

    Scopes have names of their own, so that the time that parking takes tells no tenant what others wrote.
    """
    names, digest, keys = [], hashlib.blake2b(digest_size=16), resident.keys
    scope = resident.scope.encode("utf-8", "surrogatepass")
    digest.update(f"{len(scope)}\0".encode() + scope)
    data, step = memoryview(keys).cast("B"), paging.slots * keys.itemsize
    for page in range(paging.count(len(keys))):
        digest.update(data[page * step : (page + 1) * step])
        names.append(digest.digest())
    return names
