from __future__ import annotations

import copy
import dataclasses
import doctest
import math
import pickle
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.base import ladders
from langchain_gemma_jax.engine.base.chunk_plan import Chunk
from langchain_gemma_jax.engine.base.ladders import LARGEST_RUNG, STEP_SLACK, Ladders, TextLadder
from langchain_gemma_jax.errors import ContextLengthError, InputError
from langchain_gemma_jax.models.seams import kv_cache

ODD = [-(2**63), -1, 0, 2**63, 2**64, math.inf, -math.inf, math.nan, True, "1", None]
RUNGS = st.sets(st.integers(1, 600), max_size=4).map(lambda rungs: tuple(sorted(rungs)))
LADDERS = st.builds(
    Ladders,
    chunks=st.builds(lambda first, rest: (first, *(r for r in rest if r > first)), st.integers(1, 16), RUNGS),
    capacities=RUNGS.filter(len),
    rows=RUNGS.map(lambda rungs: (1, *(r for r in rungs if r > 1))),
    draft=st.integers(0, 15),
)


def test_the_slack_is_that_of_the_cache():
    assert STEP_SLACK == kv_cache.STEP_SLACK


@pytest.mark.parametrize("name", ["chunks", "capacities", "rows"])
@pytest.mark.parametrize("ladder", [(), (1, 1), (2, 1), (1, 2, 2), 1, "12", None, {1, 2}, *([odd] for odd in ODD)])
def test_a_ladder_has_rising_positive_rungs(name, ladder):
    with pytest.raises(InputError, match=f"^{name}: expected"):
        Ladders(**{name: ladder})


def test_the_largest_rung():
    assert Ladders(capacities=(LARGEST_RUNG,)).capacity(LARGEST_RUNG) == LARGEST_RUNG
    with pytest.raises(InputError, match=r"2\*\*30"):
        Ladders(capacities=(LARGEST_RUNG + 1,))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunks": (17, 64)}, "chunks: expected the smallest to be at most 16, found 17"),
        ({"rows": (2, 4)}, "rows: expected the first to be 1"),
        *(({"draft": odd}, "draft: expected a whole number from 0") for odd in [16, 1.0, *ODD] if odd != 0),
    ],
)
def test_sizes_that_do_not_fit_the_cache(options, message):
    with pytest.raises(InputError, match=message):
        Ladders(**options)


def test_ladders_are_values():
    ladders = Ladders(chunks=[16, 32], rows=[1])
    assert ladders == Ladders(chunks=(16, 32), rows=(1,))
    assert {ladders: 1}[pickle.loads(pickle.dumps(copy.deepcopy(ladders)))] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        ladders.draft = 1


@pytest.mark.parametrize(
    ("max_context", "capacities"),
    [(1, (1,)), (511, (511,)), (512, (512,)), (513, (512, 513)), (1024, (512, 1024)), (5000, (512, 1024, 5000))],
)
def test_the_last_capacity_is_the_context(max_context, capacities):
    ladders = Ladders(capacities=(512, 1024))
    assert ladders.for_context(max_context) == dataclasses.replace(ladders, capacities=capacities)


@pytest.mark.parametrize("context", [*ODD, 1.0, 2**30 + 1])
def test_impossible_contexts(context):
    with pytest.raises(InputError, match="max_context"):
        Ladders().for_context(context)


def test_the_smallest_capacity_that_holds_the_tokens():
    ladders = Ladders(capacities=(512, 1024))
    assert [ladders.capacity(tokens) for tokens in (0, 1, 512, 513, 1024)] == [512, 512, 512, 1024, 1024]
    with pytest.raises(ContextLengthError) as caught:
        ladders.capacity(1030)
    assert caught.value.excess == 6


def test_the_smallest_step_that_fits_the_conversations():
    ladders = Ladders(rows=(1, 2, 8))
    assert [ladders.rows_for(n) for n in (1, 2, 3, 8)] == [1, 2, 8, 8]
    for count in (0, 9):
        with pytest.raises(InputError, match="from 1 to 8 conversations"):
            ladders.rows_for(count)


@pytest.mark.long
@given(LADDERS, st.data())
@settings(max_examples=200, deadline=None)
def test_chunks_cover_the_tokens_and_stay_in_the_cache(ladders, data):
    capacity = data.draw(st.sampled_from(ladders.capacities))
    start = data.draw(st.integers(0, capacity))
    count = data.draw(st.integers(0, capacity - start))
    keys = set(ladders.program_keys(window=512))
    end = start
    for chunk in ladders.plan_chunks(start, count, capacity):
        assert ("read", chunk.size, capacity) in keys
        assert end + chunk.size <= capacity + STEP_SLACK
        end += chunk.tokens
    assert end == start + count


@pytest.mark.parametrize(
    ("tokens", "sizes"),
    [
        (0, []),
        (1, [16]),
        (16, [16]),
        (17, [64]),
        (65, [64, 16]),
        (300, [256, 64]),
        (513, [512, 16]),
        (1000, [512, 512]),
    ],
)
def test_plans_of_the_default_ladder(tokens, sizes):
    assert [chunk.size for chunk in Ladders().plan_chunks(0, tokens, 2048)] == sizes


def test_the_end_of_a_cache_is_read_in_small_chunks():
    assert Ladders().plan_chunks(511, 1, 512) == [Chunk(1, 16)]
    assert Ladders().plan_chunks(512 - 17, 17, 512) == [Chunk(16, 16), Chunk(1, 16)]  # 64 would leave it


def test_the_cost_can_be_measured():
    assert Ladders().plan_chunks(0, 64, 512, cost=lambda size: size**2) == [Chunk(16, 16)] * 4


@pytest.mark.parametrize(("start", "count", "capacity"), [(0, 1, 500), (-1, 1, 512), (0, -1, 512), (500, 13, 512)])
def test_impossible_plans(start, count, capacity):
    with pytest.raises(InputError, match="expected"):
        Ladders().plan_chunks(start, count, capacity)


@given(LADDERS, st.none() | st.integers(1, 600))
@settings(max_examples=100, deadline=None)
def test_the_bound_counts_the_keys(ladders, window):
    keys = list(ladders.program_keys(window))
    assert len(set(keys)) == len(keys) == ladders.programs(window).total


def test_the_programs_of_a_small_configuration():
    ladders = Ladders(chunks=(16, 64), capacities=(32, 64, 128), rows=(1, 2), draft=3)
    keys = set(ladders.program_keys(window=64))
    assert {key[1:] for key in keys if key[0] == "read"} == {(16, 32), (16, 64), (64, 64), (16, 128), (64, 128)}
    assert {key[1:] for key in keys if key[0] == "restore"} == {(r, c) for r in (48, 80) for c in (32, 64, 128)}
    bound = ladders.programs(window=64)
    assert dict(bound.kinds) == {
        "read": 5,
        "pick": 3,  # for a step of 1 or 2 rows, and for 3 drafted tokens behind the newest
        "step": 6,
        "verify": 3,
        "empty": 3,
        "resize": 9,
        "snapshot": 3,
        "restore": 6,
    }
    assert str(bound).endswith("9 resize + 3 snapshot + 6 restore = 38 programs")


def test_programs_that_a_configuration_never_needs_are_not_counted():
    kinds = Ladders(draft=0).programs(window=None).kinds
    assert [kind for kind, count in kinds.items() if count == 0] == ["verify", "snapshot", "restore"]


def test_the_examples_are_true():
    found = doctest.testmod(ladders)
    assert (found.failed, found.attempted > 2) == (0, True)


def test_texts_of_any_lengths_are_read_once_each_in_programs_that_are_known():
    random = Random(0)
    for _ in range(200):
        context = random.choice([5, 16, 17, 100, 2048, 8192, 10_000])
        ladder = TextLadder.for_context(context)
        lengths = [random.randint(1, context) for _ in range(random.randint(0, 60))]
        batches = ladder.batches(lengths)
        assert sorted(text for batch in batches for text in batch.texts) == list(range(len(lengths)))
        assert {batch.key for batch in batches} <= set(ladder.program_keys())
        for batch in batches:
            longest = max(lengths[text] for text in batch.texts)
            assert longest <= batch.tokens <= max(16, 2 * longest)
            assert len(batch.texts) <= batch.rows <= 4 * len(batch.texts)
            assert batch.rows * batch.tokens <= max(TextLadder.AT_ONCE, batch.tokens)
    assert len(list(TextLadder.for_context(2048).program_keys())) == 16
