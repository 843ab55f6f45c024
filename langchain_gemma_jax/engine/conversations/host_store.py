"""Conversations that leave the device for host memory and come back, where that is faster than reading them again.

For the owner thread. Whether it is faster follows from what moving bytes and reading tokens took here so far.
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
    """One model's conversations in host memory. They outlive its weights on the device."""

    def __init__(
        self, model: object, host: HostMemory, parked: HostIndex, costs: TransferCosts, metrics: Metrics
    ) -> None:
        self.read = Rate()  # of this model: a token
        self._model, self._host, self._host_index, self._costs, self._metrics = model, host, parked, costs, metrics

    @property
    def nbytes(self) -> int:
        return self._host_index.nbytes(self._model)

    def keep(self, resident: Resident, rings: Rings) -> bool:
        """A copy of a conversation that is about to go, if it is worth that. Its own arrays stay as they are."""
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
        except Exception as error:  # noqa: BLE001  the host's memory is full, perhaps: it can be read again
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
        """A conversation that is worth fetching for a prompt of which ``have`` tokens are on the device anyway."""
        index = self._index(rings)
        plan = index.plan(keys, scope)
        if plan.source is None:
            return None
        size = bytes_of(plan.source)
        return plan.source if self._costs.worth_fetching(size, plan.length - have, self.read) else None

    def reach(self, keys: Sequence[int], scope: str, rings: Rings) -> int:
        """Return how many first tokens of a prompt can be fetched from here."""
        return self.plan(keys, scope, rings).length

    def plan(self, keys: Sequence[int], scope: str, rings: Rings) -> Reuse:
        """Return what a prompt could take over from here."""
        return self._index(rings).plan(keys, scope) if self.nbytes else Reuse()

    def bytes_back(self, parked: Resident) -> int:
        """What a parked conversation will take of each device."""
        return bytes_of(parked) // self._host.parts

    def fetch(self, parked: Resident) -> Resident:
        """Move a parked conversation to the device and return it. The host has it no longer."""
        began = time.perf_counter()
        handle, *copies = self._host.fetch([parked.handle, *(kept.handle for kept in parked.snapshots)])
        self._costs.to_device.add(time.perf_counter() - began, bytes_of(parked))
        found = _moved(parked, handle, copies, lambda nbytes: nbytes // self._host.parts)
        self._host_index.take(parked)
        self._metrics.restored += 1
        self._metrics.restored_tokens += len(found.keys)
        return found

    def holds(self, parked: Resident) -> bool:
        """Whether a parked conversation is here yet."""
        return parked in self._host_index

    def clear(self) -> None:
        """Forget them all: the weights are others now, or gone for good."""
        self._host_index.forget(self._model)

    def _index(self, rings: Rings) -> PrefixIndex:
        return self._host_index.of(self._model, rings)


def _moved(resident: Resident, handle: object, copies: Sequence[object], nbytes: Callable[[int], int]) -> Resident:
    """A conversation whose arrays are elsewhere now, and take so many bytes there."""
    pairs = zip(resident.snapshots, copies, strict=True)
    snapshots = [replace(kept, handle=copy, nbytes=nbytes(kept.nbytes)) for kept, copy in pairs]
    return replace(resident, handle=handle, nbytes=nbytes(resident.nbytes), snapshots=snapshots)


def bytes_of(resident: Resident) -> int:
    """A conversation's, with its snapshots."""
    return resident.nbytes + sum({id(kept.handle): kept.nbytes for kept in resident.snapshots}.values())
