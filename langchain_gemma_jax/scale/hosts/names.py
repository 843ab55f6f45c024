"""Names by which the processes of a group call the same arrays: the batch in which one was made, and its place."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TypeAlias

import jax

Name: TypeAlias = tuple[int, int]
Runs: TypeAlias = list[list[int]]
"""Names as they are sent: a batch, the place of the first of some that follow each other, and how many these are."""


class ArrayNames:
    """The names that a leader gave its arrays, as long as it has these. What it has no longer, followers need not."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Name, weakref.ref[jax.Array]]] = {}
        self._gone: deque[Name] = deque()
        self._batches = count(1)

    def batch(self) -> int:
        """Return the name of the arrays that are made next."""
        return next(self._batches)

    def give(self, batch: int, arrays: Iterable[jax.Array]) -> None:
        """Name the arrays of a batch."""
        for place, array in enumerate(arrays):
            self._known[id(array)] = (batch, place), weakref.ref(array, self._forgetting(id(array), (batch, place)))

    def of(self, arrays: Iterable[jax.Array]) -> Runs:
        """Return the names of arrays, in their order.

        Raises:
            LookupError: one of them was made behind the followers' backs.
        """
        return runs(self._known[id(array)][0] for array in arrays)

    def gone(self) -> Runs:
        """Return the names of what has gone since this was last asked."""
        found = []
        while self._gone:
            found.append(self._gone.popleft())
        return runs(sorted(found))

    @property
    def some_gone(self) -> bool:
        """Whether something has."""
        return bool(self._gone)

    def look(self) -> None:
        """See which arrays were deleted while somebody still refers to them."""
        for key, (name, reference) in self._known.copy().items():
            array = reference()
            if array is not None and array.is_deleted() and self._known.pop(key, None) is not None:
                self._gone.append(name)

    def _forgetting(self, key: int, name: Name) -> _Forgetting:
        return _Forgetting(self, key, name)

    def forget(self, key: int, name: Name) -> None:
        """Note that an array is no more. The garbage collector calls this, in any thread: so nothing is waited for."""
        if (known := self._known.get(key)) is not None and known[0] == name:
            del self._known[key]
            self._gone.append(name)


class _Forgetting:
    """What the end of an array calls."""

    __slots__ = ("_key", "_name", "_names")

    def __init__(self, names: ArrayNames, key: int, name: Name) -> None:
        self._names, self._key, self._name = names, key, name

    def __call__(self, _: object) -> None:
        self._names.forget(self._key, self._name)


def runs(names: Iterable[Name]) -> Runs:
    """Return names as they are sent."""
    found: Runs = []
    for batch, place in names:
        if found and found[-1][0] == batch and sum(found[-1][1:]) == place:
            found[-1][2] += 1
        else:
            found.append([batch, place, 1])
    return found


def each(told: Sequence[Sequence[int]]) -> list[Name]:
    """Return the names that were sent."""
    return [(batch, place) for batch, first, many in told for place in range(first, first + many)]
