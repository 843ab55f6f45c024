"""Names of arrays that are the same in all processes of a group: the batch that an array is of, and its place in it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TypeAlias

import jax

Name: TypeAlias = tuple[int, int]
Runs: TypeAlias = list[list[int]]
"""Names in the form in which they are sent: for each run of consecutive places a batch, the first place, a count."""


class ArrayNames:
    """The names of the leader's arrays, for as long as it has them. Followers can drop what the leader has dropped."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Name, weakref.ref[jax.Array]]] = {}
        self._gone: deque[Name] = deque()
        self._batches = count(1)

    def batch(self) -> int:
        """Return the number of the next batch of arrays."""
        return next(self._batches)

    def give(self, batch: int, arrays: Iterable[jax.Array]) -> None:
        """Name the arrays of a batch."""
        for place, array in enumerate(arrays):
            self._known[id(array)] = (batch, place), weakref.ref(array, self._forgetting(id(array), (batch, place)))

    def of(self, arrays: Iterable[jax.Array]) -> Runs:
        """Return the names of arrays, in their order.

        Raises:
            LookupError: one of them has no name, as the followers did not make it.
        """
        return runs(self._known[id(array)][0] for array in arrays)

    def gone(self) -> Runs:
        """Return the names of the arrays that have gone since the last call."""
        found = []
        while self._gone:
            found.append(self._gone.popleft())
        return runs(sorted(found))

    @property
    def some_gone(self) -> bool:
        """True if arrays have gone since the last call of ``gone``."""
        return bool(self._gone)

    def look(self) -> None:
        """Note arrays that were deleted while there are still references to them."""
        for key, (name, reference) in self._known.copy().items():
            array = reference()
            if array is not None and array.is_deleted() and self._known.pop(key, None) is not None:
                self._gone.append(name)

    def _forgetting(self, key: int, name: Name) -> _Forgetting:
        return _Forgetting(self, key, name)

    def forget(self, key: int, name: Name) -> None:
        """Note that an array has gone. The garbage collector calls this, in any thread, so it must not wait."""
        if (known := self._known.get(key)) is not None and known[0] == name:
            del self._known[key]
            self._gone.append(name)


class _Forgetting:
    """The callback of a weak reference: forgets the name of an array that has gone."""

    __slots__ = ("_key", "_name", "_names")

    def __init__(self, names: ArrayNames, key: int, name: Name) -> None:
        self._names, self._key, self._name = names, key, name

    def __call__(self, _: object) -> None:
        self._names.forget(self._key, self._name)


def runs(names: Iterable[Name]) -> Runs:
    """Return names in the form in which they are sent."""
    found: Runs = []
    for batch, place in names:
        if found and found[-1][0] == batch and sum(found[-1][1:]) == place:
            found[-1][2] += 1
        else:
            found.append([batch, place, 1])
    return found


def each(runs: Sequence[Sequence[int]]) -> list[Name]:
    """Return the names that were sent."""
    return [(batch, place) for batch, first, many in runs for place in range(first, first + many)]
