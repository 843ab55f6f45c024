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
from langchain_gemma_jax.engine.base.ladders import FEW_TOKENS, LARGEST_RUNG, Ladders, TextLadder
from langchain_gemma_jax.engine.device import programs
from langchain_gemma_jax.errors import ContextLengthError, InputError

ODD = [-(2**63), -1, 0, 2**63, 2**64, math.inf, -math.inf, math.nan, True, "1", None]
RUNGS = st.sets(st.integers(1, 600), max_size=4).map(lambda rungs: tuple(sorted(rungs)))
LADDERS = st.builds(
    Ladders,
    chunks=st.builds(lambda first, rest: tuple(sorted({first, *rest})), st.just(16), RUNGS),
    capacities=RUNGS.filter(len),
    rows=RUNGS.map(lambda rungs: (1, *(r for r in rungs if r > 1))),
    draft=st.integers(0, 15),
    padding_is_free=st.booleans(),
)


def test_a_few_tokens_are_as_many_as_the_programs_give_what_they_read_of():
    assert FEW_TOKENS == programs.FEW_TOKENS


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
        ({"chunks": (17, 64)}, r"chunks: expected one of 8 to 16 tokens, .* found \(17, 64\)"),
        ({"chunks": (7, 17)}, "chunks: expected one of 8 to 16 tokens, in which a token and 7 drafted ones"),
        ({"rows": (2, 4)}, "rows: expected the first to be 1"),
        *(({"draft": odd}, "draft: expected a whole number from 0") for odd in [16, 1.0, *ODD] if odd != 0),
    ],
)
def test_sizes_that_drafts_cannot_be_checked_in(options, message):
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


@given(LADDERS, st.integers(0, 2000))
@settings(max_examples=100, deadline=None)
def test_chunks_cover_the_tokens_and_have_sizes_of_the_ladder(ladders, count):
    ladders = ladders.for_context(2000)
    chunks = ladders.plan_chunks(count)
    assert sum(chunk.tokens for chunk in chunks) == count
    assert {("read", chunk.size, 2000) for chunk in chunks} <= set(ladders.program_keys(moves_pages=True))
    assert all(chunk.tokens == chunk.size for chunk in chunks[:-1])
    assert all(0 < chunk.tokens <= chunk.size for chunk in chunks)


@pytest.mark.parametrize(
    ("tokens", "sizes"),
    [(0, []), (1, [16]), (16, [16]), (17, [16, 16]), (300, [512]), (513, [512, 16]), (1000, [512, 512])],
)
def test_plans_of_the_default_ladder(tokens, sizes):
    assert [chunk.size for chunk in Ladders().plan_chunks(tokens)] == sizes


@pytest.mark.parametrize(
    ("tokens", "sizes"), [(0, []), (1, [16]), (17, [512]), (512, [512]), (513, [512, 16]), (1100, [512, 512, 512])]
)
def test_where_padding_is_free_the_fewest_chunks_are_the_cheapest(tokens, sizes):
    ladders = Ladders().for_kernels(padding_is_free=True)
    assert [chunk.size for chunk in ladders.plan_chunks(tokens)] == sizes


def test_kernels_need_one_capacity():
    ladders = Ladders().for_context(5000).for_kernels(padding_is_free=False)
    assert (ladders.capacities, ladders.padding_is_free) == ((5000,), False)
    assert ladders.capacity(1) == 5000


def test_the_cost_can_be_measured():
    assert Ladders().plan_chunks(64, cost=lambda size: size**2) == [Chunk(16, 16)] * 4


def test_only_some_of_the_sizes_may_be_used():
    for free in (False, True):
        ladders = Ladders(padding_is_free=free)
        assert ladders.plan_chunks(20, sizes=(512,)) == [Chunk(20, 512)]
        assert ladders.plan_chunks(40, sizes=(16,)) == [Chunk(16, 16), Chunk(16, 16), Chunk(8, 16)]


def test_an_impossible_plan():
    with pytest.raises(InputError, match="expected a number of tokens, found -1"):
        Ladders().plan_chunks(-1)


def test_drafts_are_checked_in_the_smallest_chunk_that_has_room_for_them():
    assert [Ladders(chunks=(4, 8, 16, 512), draft=draft).check for draft in (0, 3, 4, 7, 8, 15)] == [4, 4, 8, 8, 16, 16]
    assert [Ladders(rows=(1, 4), draft=draft).picks for draft in (0, 3, 4, 15)] == [4, 4, 5, 16]
    assert Ladders().longest_chunk == 512


@given(LADDERS, st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_bound_counts_the_keys(ladders, moves_pages):
    keys = list(ladders.program_keys(moves_pages=moves_pages))
    assert len(set(keys)) == len(keys) == ladders.programs(moves_pages=moves_pages).total


def test_the_programs_of_a_small_configuration():
    ladders = Ladders(chunks=(16, 64), capacities=(32, 128), rows=(1, 2), draft=3)
    keys = set(ladders.program_keys(moves_pages=False))
    assert {key[1:] for key in keys if key[0] == "read"} == {(16, 32), (64, 32), (16, 128), (64, 128)}
    assert {key[1:] for key in keys if key[0] == "pick"} == {(2,), (4,)}  # for a step, and for drafted tokens
    assert {key[1:] for key in keys if key[0] == "step"} == {(1, 32), (2, 32), (1, 128), (2, 128)}
    bound = ladders.programs(moves_pages=False)
    assert str(bound) == "1 empty + 4 read + 2 pick + 4 step = 11 programs"
    assert ladders.programs(moves_pages=True).total == 14
    few = ladders.for_kernels(padding_is_free=True).programs(moves_pages=False)
    assert str(few) == "1 empty + 2 read + 2 pick + 2 step = 7 programs"


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
