"""Conversations that are parked in host memory and fetched back, if that is faster than reading them again.

For the owner thread. The measured times of moving bytes and reading tokens decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.conversations.host_memory import HostMemory
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse, Rings
from langchain_gemma_jax.engine.conversations.transfer_costs import Rate, TransferCosts
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.resident import Resident

_log = OwnLog(__name__)


class HostStore:
    """One model's conversations in host memory. They stay when its weights leave the device."""

    def __init__(
        self, model: object, host: HostMemory, parked: HostIndex, costs: TransferCosts, metrics: Metrics
    ) -> None:
        self.read = Rate()  # seconds to read a token with this model
        self._model, self._host, self._host_index, self._costs, self._metrics = model, host, parked, costs, metrics

    @property
    def nbytes(self) -> int:
        return self._host_index.nbytes(self._model)

    def keep(self, resident: Resident, rings: Rings) -> bool:
        """Copy a conversation that is about to leave, if that is worth it. Return True if a copy was kept."""
        size = bytes_of(resident) * self._host.parts
        if (
            not self._host.usable
            or size > self._host_index.budget
            or not self._costs.worth_keeping(size, len(resident.keys), self.read)
        ):
            return False
        began = time.perf_counter()
        try:
            handle, *copies = self._host.put([resident.handle, *(kept.handle for kept in resident.snapshots)])
        except Exception as error:  # noqa: BLE001  such as full host memory: it can be read again
            tokens = len(resident.keys)
            _log.warning("a conversation of %d tokens could not be kept on the host: %s", tokens, named(error))
            return False
        self._costs.to_host.add(time.perf_counter() - began, size)
        here = _moved(resident, handle, copies, lambda nbytes: nbytes * self._host.parts)
        self._index(rings)
        self._host_index.add(self._model, replace(here, keys=resident.keys[:], leased=False))
        self._metrics.parked += 1
        return True

    def find(self, keys: Sequence[int], scope: str, have: int, rings: Rings) -> Resident | None:
        """Return a conversation worth fetching for a prompt with ``have`` tokens on the device already, or None."""
        index = self._index(rings)
        plan = index.plan(keys, scope)
        if plan.source is None:
            return None
        size = bytes_of(plan.source)
        return plan.source if self._costs.worth_fetching(size, plan.length - have, self.read) else None

    def reach(self, keys: Sequence[int], scope: str, rings: Rings) -> int:
        """Return the number of first tokens of a prompt that can be fetched from here."""
        return self.plan(keys, scope, rings).length

    def plan(self, keys: Sequence[int], scope: str, rings: Rings) -> Reuse:
        """Return the part of a prompt that could be reused from here."""
        return self._index(rings).plan(keys, scope) if self.nbytes else Reuse()

    def bytes_back(self, parked: Resident) -> int:
        """Return the bytes that a parked conversation will take on each device."""
        return bytes_of(parked) // self._host.parts

    def fetch(self, parked: Resident) -> Resident:
        """Move a parked conversation to the device and return it. Host memory no longer has it."""
        began = time.perf_counter()
        handle, *copies = self._host.fetch([parked.handle, *(kept.handle for kept in parked.snapshots)])
        self._costs.to_device.add(time.perf_counter() - began, bytes_of(parked))
        found = _moved(parked, handle, copies, lambda nbytes: nbytes // self._host.parts)
        self._host_index.take(parked)
        self._metrics.restored += 1
        self._metrics.restored_tokens += len(found.keys)
        return found

    def holds(self, parked: Resident) -> bool:
        """Return True if a parked conversation is still here."""
        return parked in self._host_index

    def clear(self) -> None:
        """Drop all conversations, because the weights have changed or are gone for good."""
        self._host_index.forget(self._model)

    def _index(self, rings: Rings) -> PrefixIndex:
        return self._host_index.of(self._model, rings)


def _moved(resident: Resident, handle: object, copies: Sequence[object], nbytes: Callable[[int], int]) -> Resident:
    """Return a conversation with its arrays replaced by copies elsewhere; ``nbytes`` converts their sizes."""
    pairs = zip(resident.snapshots, copies, strict=True)
    snapshots = [replace(kept, handle=copy, nbytes=nbytes(kept.nbytes)) for kept, copy in pairs]
    return replace(resident, handle=handle, nbytes=nbytes(resident.nbytes), snapshots=snapshots)


def bytes_of(resident: Resident) -> int:
    """Return the bytes of a conversation with its snapshots."""
    return resident.nbytes + sum({id(kept.handle): kept.nbytes for kept in resident.snapshots}.values())
