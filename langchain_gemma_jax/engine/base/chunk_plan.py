"""The cheapest division of a prompt into chunks of a ladder's sizes.

Chunks that cover ``count`` tokens and fit ``room`` slots have sizes with a sum from ``count`` to ``room``; their order
does not change the cost. The least cost of each exact sum is an unbounded knapsack problem, solved in a table that is
made once for a ladder and its costs.

The table stays short. Let ``best`` be the size with the least cost per token, with all sizes in units of their greatest
common divisor. Among any ``best`` chunks of other sizes there are some whose sum is a multiple of ``best`` (two of
their running sums leave the same remainder), and chunks of size ``best`` can replace those at no more cost. So there is
a cheapest plan with fewer than ``best`` chunks of other sizes, and beyond the largest sum of those, each further
``best`` tokens are one more chunk of size ``best``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from langchain_gemma_jax.errors import InputError


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of a prompt that is read at once: ``tokens`` real tokens in a program for ``size`` tokens."""

    tokens: int
    size: int


def plan(sizes: tuple[int, ...], count: int, room: int, most_room: int, cost: Callable[[int], float]) -> list[Chunk]:
    """Return the cheapest chunks for ``count`` tokens that fit ``room`` slots, padding included.

    Only the last chunk is padded. A plan must exist: the smallest size is at most ``room - count + 1``. ``most_room``
    is the largest ``room`` of all calls. Among plans of equal cost, the one with the least padding is chosen.

    Raises:
        InputError: the cost of a size is not a positive number.
    """
    if count == 0:
        return []
    costs = tuple(cost(size) for size in sizes)
    if not all(math.isfinite(each) and each > 0 for each in costs):
        raise InputError(f"cost: expected a positive number for each of {sizes}, found {costs}.")
    table = _table(sizes, costs, most_room)
    first = count + -count % table.unit
    _, total = min((table.cost(total), total) for total in range(first, min(room, count + sizes[-1]) + 1, table.unit))
    # Every chunk costs something, so no chunk is all padding: the plan without it would be cheaper.
    chunks = sorted(table.chunks(total), reverse=True)
    full = [Chunk(size, size) for size in chunks[:-1]]
    return [*full, Chunk(count - sum(chunks[:-1]), chunks[-1])]


class _Table:
    """The least cost of chunks with a given sum, for every sum."""

    def __init__(self, sizes: tuple[int, ...], costs: tuple[float, ...], most_room: int) -> None:
        self.unit = math.gcd(*sizes)
        by_rate = [(cost / size, -size, cost) for size, cost in zip(sizes, costs, strict=True)]
        _, best, self._best_cost = min(by_rate)
        self._best = -best
        others = [size for size in sizes if size != self._best]
        # Sums from here on need one more chunk of the best size.
        self._limit = min((self._best // self.unit - 1) * max(others, default=0) + self._best, most_room)
        self._units = self._limit // self.unit
        self._least: list[float] = [0.0]
        self._last = [0]  # a chunk of the cheapest plan for the sum, in units
        options = [(size // self.unit, cost) for size, cost in zip(sizes, costs, strict=True)][::-1]
        for total in range(1, self._units + 1):
            reach = [(self._least[total - size] + cost, size) for size, cost in options if size <= total]
            least, last = min(reach, default=(math.inf, 0), key=lambda found: found[0])
            self._least.append(least)
            self._last.append(last)

    def _split(self, total: int) -> tuple[int, int]:
        """Return the number of best-size chunks by which a sum is beyond the table, and the rest of it in units."""
        surplus = max(0, -(-(total - self._limit) // self._best))
        return surplus, (total - surplus * self._best) // self.unit

    def cost(self, total: int) -> float:
        """Return the least cost of a sum; infinity if no chunks have that sum."""
        surplus, rest = self._split(total)
        return surplus * self._best_cost + self._least[rest]

    def chunks(self, total: int) -> list[int]:
        """Return the sizes of a cheapest plan."""
        surplus, rest = self._split(total)
        found = [self._best] * surplus
        while rest:
            found.append(self._last[rest] * self.unit)
            rest -= self._last[rest]
        return found


_table = lru_cache(maxsize=16)(_Table)
