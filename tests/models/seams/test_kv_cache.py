"""The cache against a plain record of which token was written where."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import STEP_SLACK, LayerKV, abstract_cache, allocate, slots
from tests.parity.tiny import small

SIZE = 12  # slots of the ring in these tests


def holds(end):
    """The position that each slot holds once positions 0 to ``end - 1`` were written one after the other."""
    found = [-1] * SIZE
    for position in range(end):
        found[position % SIZE] = position
    return found


@pytest.mark.parametrize("end", [0, 1, 5, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 1000])
def test_which_position_a_slot_holds_follows_from_how_many_were_written(end):
    (found,) = np.asarray(kv_cache.slot_positions(jnp.array([end]), SIZE))
    expected = np.array(holds(end))
    np.testing.assert_array_equal(np.where(found < 0, -1, found), expected)


def marked(positions):
    """Keys and values ``[row, 1, token, 1]`` that say which position they belong to."""
    keys = jnp.asarray(positions, jnp.float32)[:, None, :, None]
    return keys, -keys


def ring(ends):
    """The cache after ``ends`` tokens a row; slots that were never written hold 0."""
    keys, values = marked(np.maximum([holds(end) for end in ends], 0))
    return LayerKV(keys, values)


def contents(cache):
    keys, values = np.asarray(cache.keys)[:, 0, :, 0], np.asarray(cache.values)[:, 0, :, 0]
    np.testing.assert_array_equal(keys, -values)
    return keys


@pytest.mark.parametrize("in_loop", [False, True])
@pytest.mark.parametrize("length", [1, 7, SIZE])
def test_a_span_lands_in_its_slots_and_nowhere_else(length, in_loop):
    before = LayerKV(*marked(np.full((2, SIZE), 99)))
    starts = np.array([0, SIZE - length])
    at = starts[:, None] + np.arange(length)
    after = contents(kv_cache.write_span(before, *marked(at), jnp.array(starts), in_loop=in_loop))
    expected = np.full((2, SIZE), 99)
    for row, positions in enumerate(at):
        expected[row, positions] = positions
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("starts", [(0, 0), (5, 11), (12, 13), (100, 7)])
@pytest.mark.parametrize("counts", [(0, 0), (1, 30), (5, 0), (SIZE, SIZE + 1), (30, 29)])
def test_a_chunk_leaves_the_newest_real_tokens_in_the_ring(starts, counts):
    """Its padding leaves nothing: 777 is nowhere."""
    at = np.array(starts)[:, None] + np.arange(30)
    real = np.arange(30)[None] < np.array(counts)[:, None]
    after = kv_cache.rewrite_ring(
        ring(starts), *marked(np.where(real, at, 777)), jnp.array(starts), jnp.array(counts)
    )  # fmt: skip
    ends = np.array(starts) + counts
    np.testing.assert_array_equal(contents(after), np.maximum([holds(end) for end in ends], 0))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_what_is_written_is_rounded_to_the_dtype_of_the_cache(dtype):
    cache = LayerKV(jnp.zeros((1, 1, SIZE, 2), dtype), jnp.full((1, 1, SIZE, 2), -3.5, dtype))
    new = jnp.full((1, 1, 1, 2), 1.23456789)
    after = kv_cache.write_span(cache, new, -new, jnp.array([4]))
    for found, before, value in ((after.keys, 0, new), (after.values, -3.5, -new)):
        assert found.dtype == dtype
        expected = jnp.full((SIZE, 2), before, dtype).at[4].set(value[0, 0, 0].astype(dtype))
        np.testing.assert_array_equal(found[0, 0], expected)
    again = kv_cache.rewrite_ring(cache, new, -new, jnp.array([4]), jnp.array([1]))
    np.testing.assert_array_equal(again.keys, after.keys)
    np.testing.assert_array_equal(again.values, after.values)


def test_a_local_layer_keeps_its_window_and_the_slack():
    local, everywhere = small("gemma-3-4b").layers
    assert (slots(local, 1000), slots(everywhere, 1000)) == (8 + STEP_SLACK, 1000)
    assert (slots(local, 10), slots(everywhere, 10)) == (10, 10)


def test_layers_that_share_keep_nothing_and_the_others_their_own_heads():
    config = small("gemma-4-e2b")
    shapes = [None if spec is None else spec.shape for spec in abstract_cache(config.cache_layout, 3, 100, "bfloat16")]
    assert shapes == [(3, 1, 24, 8), (3, 1, 100, 16), None, None]


def test_a_new_cache_is_what_was_announced():
    config = small("gemma-4-e2b")
    found = allocate(config.cache_layout, 2, 50, "float16")
    for spec, layer in zip(abstract_cache(config.cache_layout, 2, 50, "float16"), found, strict=True):
        assert (spec is None) == (layer is None)
        if layer is not None:
            for array in (layer.keys, layer.values):
                assert (array.shape, array.dtype) == (spec.shape, jnp.float16)
                assert not array.any()
