"""The cache against a plain record of which token was written where."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.base import pages
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import PAGE, LayerKV, PageCounts, abstract_layers, allocate
from tests.parity.tiny import small

SLOTS, COUNT = 4, 30  # of a page, and pages
HEADS, SIZE = 2, 3


def record(entries, end):
    """The position that each slot of a table's pages holds once positions 0 to ``end - 1`` were written in order."""
    found = [-1] * (entries * SLOTS)
    for position in range(end):
        found[position % (entries * SLOTS)] = position
    return found


def test_a_page_is_as_large_for_those_who_know_no_jax():
    assert pages.PAGE == PAGE


@pytest.mark.parametrize("entries", [1, 3, 8])
def test_which_position_a_slot_holds_follows_from_how_many_were_written(entries):
    """Once more than fit were written, the page that is written to has slots of the round before: they are empty."""
    ends = np.array([0, 1, 3, 4, 5, 11, 12, 13, 32, 33, 1000])
    found = np.asarray(kv_cache.slot_positions(entries, SLOTS, jnp.asarray(ends)))
    for positions, end in zip(found, ends, strict=True):
        page = (end - 1) // SLOTS
        wanted = [at if at < 0 or at // SLOTS > page - entries else -1 for at in record(entries, end)]
        np.testing.assert_array_equal(np.where(positions < 0, -1, positions), wanted)


def written(put, old, table, new, start, count):
    return jax.jit(put)(old, new, table, jnp.asarray(start, jnp.int32), jnp.asarray(count, jnp.int32))


@pytest.mark.parametrize("put", [kv_cache._put_slots, kv_cache._put_pages], ids=["by slots", "by pages"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("tokens", [1, 2, 5, 13])
def test_tokens_land_in_their_slots_and_nothing_else_changes(put, dtype, tokens):
    """Rows of several lengths, tables in any order and gone round, chunks that begin and end within a page."""
    random, rows = np.random.default_rng(tokens), 3
    entries = -(-tokens // SLOTS) + 1
    for _ in range(25):
        old = random.normal(size=(COUNT, HEADS, SLOTS, SIZE)).astype(dtype)
        new = random.normal(size=(rows, HEADS, tokens, SIZE)).astype(dtype)
        table = random.permutation(np.arange(1, COUNT))[: rows * entries].reshape(rows, entries).astype(np.int32)
        count, start = random.integers(0, tokens + 1, rows), random.integers(0, 40, rows)
        wanted = old.copy()
        for row in range(rows):
            for token in range(count[row]):
                at = start[row] + token
                wanted[table[row, at // SLOTS % entries], :, at % SLOTS] = new[row, :, token]
        found = np.array(written(put, jnp.asarray(old), jnp.asarray(table), jnp.asarray(new), start, count))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found[1:], wanted[1:])  # page 0 has what is padding


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_what_is_written_is_rounded_to_the_dtype_of_the_cache_and_read_back(dtype):
    layer = LayerKV(jnp.zeros((3, 1, SLOTS, 2), dtype), jnp.full((3, 1, SLOTS, 2), -3.5, dtype))
    new, table, start = jnp.full((1, 1, 1, 2), 1.23456789), jnp.array([[2, 1]]), jnp.array([5])
    after = jax.jit(kv_cache.write)(layer, table, new, -new, start, jnp.array([1]))
    keys, values, positions = jax.jit(kv_cache.gather)(after, table, start + 1)
    assert positions.tolist() == [[0, 1, 2, 3, 4, 5, -1, -1]]
    for found, before, value in ((keys, 0, new), (values, -3.5, -new)):
        assert found.dtype == dtype
        expected = jnp.full((2 * SLOTS, 2), before, dtype).at[5].set(value[0, 0, 0].astype(dtype))
        np.testing.assert_array_equal(found[0, 0], expected)


def test_a_layer_has_the_pages_of_its_kind_and_the_table_of_its_kind():
    local, everywhere = small("gemma-3-4b").layers
    layout = small("gemma-3-4b").cache_layout
    specs = abstract_layers(layout, PageCounts(7, 5, 16), "bfloat16")
    assert [spec.shape[:3:2] for spec in specs if spec is not None] == [(5, 16), (7, 16)]
    cache = allocate(layout, 2, 50, "float32", page=16)
    assert cache.table(local) is cache.local
    assert cache.table(everywhere) is cache.whole


def test_layers_that_share_keep_nothing_and_the_others_their_own_heads():
    config = small("gemma-4-e2b")
    shapes = [
        None if spec is None else spec.shape
        for spec in abstract_layers(config.cache_layout, PageCounts(9, 4, 24), "bfloat16")
    ]
    assert shapes == [(4, 1, 24, 8), (9, 1, 24, 16), None, None]


@pytest.mark.parametrize("capacity", [1, 16, 50])
def test_a_new_cache_has_room_for_each_row_in_pages_of_its_own(capacity):
    config = small("gemma-4-e2b")
    found, each = allocate(config.cache_layout, 2, capacity, "float16", page=16), -(-capacity // 16)
    for table in (found.whole, found.local):
        assert sorted(np.asarray(table).ravel().tolist()) == list(range(1, 2 * each + 1))
        assert table.shape == (2, each)
    specs = abstract_layers(config.cache_layout, PageCounts(2 * each + 1, 2 * each + 1, 16), "float16")
    for spec, layer in zip(specs, found.layers, strict=True):
        assert (spec is None) == (layer is None)
        if layer is not None:
            for array in (layer.keys, layer.values):
                assert (array.shape, array.dtype) == (spec.shape, jnp.float16)
                assert not array.any()
