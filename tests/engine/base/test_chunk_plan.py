from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.base.chunk_plan import plan
from langchain_gemma_jax.errors import InputError
from tests.counted import lines

SIZES = st.sets(st.integers(1, 20), min_size=1, max_size=4).map(lambda sizes: tuple(sorted(sizes)))


def cheapest(sizes, count, room, cost):
    """The least cost, by trying everything."""

    @cache
    def least(read):
        if read >= count:
            return 0
        full = [size for size in sizes if read + size <= room]
        return min((cost(size) + least(read + size) for size in full), default=math.inf)

    return least(0)


@given(
    SIZES,
    st.integers(0, 120),
    st.integers(0, 40),
    st.lists(st.integers(1, 60), min_size=20, max_size=20),
    st.integers(0, 200),
)
@settings(max_examples=200, deadline=None)
def test_a_plan_covers_all_fits_and_costs_least(sizes, count, slack, costs, more_room):
    assume(slack >= sizes[0] - 1)
    chunks = plan(sizes, count, count + slack, count + slack + more_room, lambda size: costs[size - 1])
    assert sum(chunk.tokens for chunk in chunks) == count
    assert all(chunk.tokens == chunk.size for chunk in chunks[:-1])
    assert all(1 <= chunk.tokens <= chunk.size for chunk in chunks)
    assert {chunk.size for chunk in chunks} <= set(sizes)
    assert sum(chunk.size for chunk in chunks) <= count + slack
    total = sum(costs[chunk.size - 1] for chunk in chunks)
    assert total == cheapest(sizes, count, count + slack, lambda size: costs[size - 1])


@given(st.integers(1, 300), st.integers(15, 600))
@settings(max_examples=100, deadline=None)
def test_what_is_left_of_a_plan_is_a_cheapest_plan_of_the_rest(count, slack):
    def cost(size):
        return size + 48

    sizes = (16, 64, 256, 512)
    first, *rest = plan(sizes, count, count + slack, 2000, cost)
    again = plan(sizes, count - first.tokens, count + slack - first.tokens, 2000, cost)
    assert sum(cost(chunk.size) for chunk in again) == sum(cost(chunk.size) for chunk in rest)


@pytest.mark.parametrize("cost", [0, -1, math.nan, math.inf])
def test_a_cost_is_positive(cost):
    with pytest.raises(InputError, match="cost: expected a positive number"):
        plan((4, 8), 5, 16, 16, lambda _: cost)


def test_an_awkward_ladder_takes_no_longer_than_its_longest_prompt():
    found = []
    taken = lines(lambda: found.extend(plan((16, 5003, 50021), 9000, 9100, 10_000, lambda size: size + 48)))
    assert sum(chunk.tokens for chunk in found) == 9000
    assert taken < 1_000_000  # without the limit: hundreds of millions of cells
