"""``HostIndex``: all models' conversations in host memory, their bytes, and the order of eviction."""

from __future__ import annotations

from collections.abc import Hashable

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, common_prefix
from langchain_gemma_jax.engine.requests.resident import Resident


class HostIndex:
    """All models' parked conversations, within a budget of bytes. The one parked longest ago is evicted first."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._indexes: dict[Hashable, PrefixIndex] = {}
        self._order: dict[Resident, Hashable] = {}  # the oldest first, each with its model

    def __contains__(self, resident: Resident) -> bool:
        return resident in self._order

    def of(self, model: Hashable) -> PrefixIndex | None:
        """Return a model's index of parked conversations. Only ``add`` and ``take`` here may change it."""
        return self._indexes.get(model)

    def opened(self, model: Hashable, paging: Paging, sizes: PageSizes) -> PrefixIndex:
        """Return a model's index of parked conversations, whose pages are of these sizes."""
        return self._indexes.setdefault(model, PrefixIndex(paging, sizes))

    def add(self, model: Hashable, resident: Resident) -> None:
        """Add a parked conversation. Those that it continues are dropped, and the oldest ones if there is no room."""
        index = self._indexes[model]
        keys = resident.keys.tobytes()
        for old in index.residents:
            length = len(old.keys)
            shorter = old.scope == resident.scope and length <= len(resident.keys)
            if shorter and common_prefix(keys, old.keys, length) == length:
                self.take(old)
        index.add(resident)
        self._order[resident] = model
        while self.nbytes() > self.budget:
            self.take(next(iter(self._order)))

    def take(self, resident: Resident) -> None:
        """Remove a parked conversation."""
        self._indexes[self._order.pop(resident)].remove(resident)

    def forget(self, model: Hashable) -> None:
        """Remove all conversations of a model that is gone, or whose weights have changed."""
        self._indexes.pop(model, None)
        self._order = {resident: whose for resident, whose in self._order.items() if whose != model}

    def nbytes(self, model: Hashable | None = None) -> int:
        """Return the bytes of a model's parked conversations or, without a model, of all."""
        if model is not None:
            return self._indexes[model].nbytes() if model in self._indexes else 0
        return sum(index.nbytes() for index in self._indexes.values())
