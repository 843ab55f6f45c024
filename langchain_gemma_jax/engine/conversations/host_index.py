"""Conversations in host memory: whose they are, how large, and which goes first."""

from __future__ import annotations

from collections.abc import Hashable

from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Rings, common_prefix
from langchain_gemma_jax.engine.requests.resident import Resident


class HostIndex:
    """All models' parked conversations, within a budget of bytes. What was put here the longest time ago goes first."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._indexes: dict[Hashable, PrefixIndex] = {}
        self._order: dict[Resident, Hashable] = {}  # oldest first; whose each is

    def __contains__(self, resident: Resident) -> bool:
        return resident in self._order

    def of(self, model: Hashable, rings: Rings) -> PrefixIndex:
        """A model's, by what they begin with. They are added and taken here alone."""
        return self._indexes.setdefault(model, PrefixIndex(rings))

    def add(self, model: Hashable, resident: Resident) -> None:
        """Park one conversation more. Those that it goes on from are of no use any more, and the oldest make room."""
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
        """Forget a parked conversation, which somebody takes away."""
        self._indexes[self._order.pop(resident)].remove(resident)

    def forget(self, model: Hashable) -> None:
        """The model is gone, or its weights are others now."""
        self._indexes.pop(model, None)
        self._order = {resident: whose for resident, whose in self._order.items() if whose != model}

    def nbytes(self, model: Hashable | None = None) -> int:
        """Return the bytes of a model's parked conversations; without a model, of all models'."""
        if model is not None:
            return self._indexes[model].nbytes() if model in self._indexes else 0
        return sum(index.nbytes() for index in self._indexes.values())
