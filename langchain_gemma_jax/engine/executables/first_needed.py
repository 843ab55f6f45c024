"""Which programs the last process needed first: the next one fetches them while it reads the weights."""

from __future__ import annotations

import json

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.base.program_key import ProgramKey

LONGEST = 8  # programs; a first answer takes four or five


class FirstNeeded:
    """The first programs that conversations of one model asked for, in their order."""

    def __init__(self, store: Store, family: str) -> None:
        self._store, self._name = store, f"opening/{family}"
        self._keys: list[ProgramKey] = []
        self._told = False

    def recall(self) -> list[ProgramKey]:
        """Return the program keys that an earlier process needed first. Empty: there was none."""
        entry = self._store.get(self._name)
        return [] if entry is None else [tuple(key) for key in json.loads(entry.payload)]

    def add(self, key: ProgramKey) -> bool:
        """A program was asked for. Gives whether the opening is over now: with the first step."""
        if self._told or key in self._keys:
            return False
        self._keys.append(key)
        self._told = key[0] in {"step", "verify"} or len(self._keys) == LONGEST
        return self._told

    def remember(self) -> None:
        """Store what this process needed first, for the processes to come."""
        if self.recall() != self._keys:
            payload = json.dumps(self._keys).encode()
            self._store.put(self._name, payload, label="what is needed first", seconds=0.0)
