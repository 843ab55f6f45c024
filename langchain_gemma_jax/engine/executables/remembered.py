"""Facts from earlier processes: the programs that are needed first, and the time that compiling takes here.

If nothing has been compiled here yet, times from other machines are used.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.base.guards import CompileCost
from langchain_gemma_jax.engine.base.program_key import ProgramKey

MOST_READ = 512  # entries on disk to read, the latest ones
LONGEST = 8  # programs; a first answer takes four or five

# Seconds for a program, and for each of its layers, as benchmarks/figures.md has them: of 18 and of 62 layers, on
# processors that did nothing else. Few machines are faster.
_ELSEWHERE = {"step": (1.9, 0.04), "pick": (2.2, 0.0)}
_WHOLE_MODEL = (0.7, 0.055)  # of programs that read
_SMALL = 0.1  # of those that move a conversation as it is
_MOVES = {"empty", "resize", "snapshot", "restore"}


class FirstNeeded:
    """The first programs that conversations of one model needed, in order."""

    def __init__(self, store: Store, family: str) -> None:
        self._store, self._name = store, f"opening/{family}"
        self._keys: list[ProgramKey] = []
        self._complete = False

    def recall(self) -> list[ProgramKey]:
        """Return the program keys that an earlier process needed first. Empty: there is no record, or no readable one.

        The record may be from another release of this package.
        """
        entry = self._store.get(self._name)
        try:
            found = None if entry is None else json.loads(entry.payload)
        except (ValueError, RecursionError):
            return []
        return [tuple(key) for key in found] if isinstance(found, list) and all(map(_is_key, found)) else []

    def add(self, key: ProgramKey) -> bool:
        """Add a needed program. Return True when the list is complete, which is with the first step."""
        if self._complete or key in self._keys:
            return False
        self._keys.append(key)
        self._complete = key[0] == "step" or len(self._keys) == LONGEST
        return self._complete

    def remember(self) -> None:
        """Store the programs that this process needed first, for later processes."""
        if self.recall() != self._keys:
            payload = json.dumps(self._keys).encode()
            self._store.put(self._name, payload, label="what is needed first", seconds=0.0)


class CompileCosts:
    """The seconds that compiling took here, by family and kind of program. Any thread may use it."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[int, float]]] = {}  # family -> kind -> number, and their seconds
        self._recalled = False
        self._lock = threading.Lock()

    def add(self, family: str, kind: str, seconds: float) -> None:
        """Add the time of a compile."""
        with self._lock:
            kinds = self._known.setdefault(family, {})
            count, total = kinds.get(kind, (0, 0.0))
            kinds[kind] = count + 1, total + seconds

    def estimate(self, family: str, kind: str, store: Store | None, layers: int) -> CompileCost:
        """Return the estimated cost of compiling a program of this kind, for a model with this number of layers."""
        self._recall(store)
        with self._lock:
            own, others = self._known.get(family, {}), list(self._known.values())
        found = (
            _mean([own[kind]] if kind in own else [])
            or _mean(own.values())
            or _mean(kinds[kind] for kinds in others if kind in kinds)
            or _mean(each for kinds in others for each in kinds.values())
        )
        return CompileCost(_elsewhere(kind, layers), measured=False) if found is None else CompileCost(found)

    @property
    def is_empty(self) -> bool:
        """True if this process has compiled no program, and read no compile times of other processes."""
        return not self._known

    def _recall(self, store: Store | None) -> None:
        """Read the compile times of the programs on disk, once."""
        if self._recalled or store is None:
            return
        self._recalled = True
        for entry in store.entries()[:MOST_READ]:
            match entry.name.split("/"):
                case ["program", family, kind, *_]:
                    self.add(family, kind, entry.seconds)


def _elsewhere(kind: str, layers: int) -> float:
    """Return the seconds that compiling a program took on other machines, where it was measured."""
    program, layer = (_SMALL, 0.0) if kind in _MOVES else _ELSEWHERE.get(kind, _WHOLE_MODEL)
    return program + layer * layers


def _mean(measured: Iterable[tuple[int, float]]) -> float | None:
    found = list(measured)
    count = sum(each for each, _ in found)
    return sum(total for _, total in found) / count if count else None


def _is_key(value: object) -> bool:
    """Return True if this is a program's key as JSON: a name, and sizes."""
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return False
    return all(isinstance(size, int) and not isinstance(size, bool) for size in value[1:])
