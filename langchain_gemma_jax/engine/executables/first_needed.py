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
        """Return the program keys that an earlier process needed first. Empty: there was none, or it says it otherwise.

        The disk may have what another release of this package wrote.
        """
        entry = self._store.get(self._name)
        try:
            found = None if entry is None else json.loads(entry.payload)
        except (ValueError, RecursionError):
            return []
        return [tuple(key) for key in found] if isinstance(found, list) and all(map(_is_key, found)) else []

    def add(self, key: ProgramKey) -> bool:
        """A program was asked for. Gives whether all that is needed first is known now: with the first step."""
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


def _is_key(found: object) -> bool:
    """Whether this is a program's key, as JSON has it: its name, and sizes."""
    if not isinstance(found, list) or not found or not isinstance(found[0], str):
        return False
    return all(isinstance(size, int) and not isinstance(size, bool) for size in found[1:])
