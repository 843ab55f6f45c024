"""A conversation as a whole: its bytes, and what resizing, copying and restoring leaves of it."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.models.seams.kv_cache import STEP_SLACK
from tests.engine.tiny import CONFIGS, CONTEXT

each = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def filled(config, capacity):
    """A sequence in which every number is another one."""
    shapes = jax.eval_shape(partial(sequence_kv.empty, config.cache_layout, capacity, CONTEXT, "float32"))
    numbers = iter(range(1, 100))
    return jax.tree.map(
        lambda leaf: (jnp.arange(leaf.size) + 1_000_000 * next(numbers)).reshape(leaf.shape).astype(leaf.dtype), shapes
    )


def same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@each
@pytest.mark.parametrize("capacity", [1, 24, 32, CONTEXT])
def test_the_bytes_are_those_of_the_arrays(config, capacity):
    sequence = sequence_kv.empty(config.cache_layout, capacity, CONTEXT, "float32")
    assert sequence_kv.sequence_bytes(config.cache_layout, capacity, CONTEXT, "float32") == sum(
        x.nbytes for x in jax.tree.leaves(sequence)
    )
    rings = sequence_kv.snapshot(config.cache_layout, sequence)
    assert sequence_kv.snapshot_bytes(config.cache_layout, capacity, "float32") == sum(
        x.nbytes for x in jax.tree.leaves(rings)
    )
    sizes = {ring.keys.shape[2] for ring in rings}
    assert sequence_kv.ring_size(config.cache_layout, capacity) == (min(sizes) if sizes else None)
    assert all(size <= capacity + STEP_SLACK for size in sizes)


@each
def test_a_copy_is_the_same_and_shares_no_memory(config):
    sequence = filled(config, 32)
    copy = sequence_kv.resize(config.cache_layout, sequence, 32)
    same(copy, sequence)
    pointers = [{leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree)} for tree in (copy, sequence)]
    assert not pointers[0] & pointers[1]


@each
def test_growing_and_shrinking_again_keeps_the_first_slots(config):
    sequence = filled(config, 32)
    large = sequence_kv.resize(config.cache_layout, sequence, CONTEXT)
    assert jax.tree.map(jnp.shape, large) == jax.tree.map(jnp.shape, filled(config, CONTEXT))
    same(sequence_kv.resize(config.cache_layout, large, 32), sequence)
    for index in config.kv_layers:
        size = sequence.layers[index].keys.shape[2]
        assert not jnp.any(large.layers[index].keys[:, :, size:])


@each
def test_rings_come_back_from_a_snapshot_and_nothing_else_does(config):
    old, new = filled(config, 32), jax.tree.map(lambda leaf: leaf + 1, filled(config, CONTEXT))
    rings = sequence_kv.snapshot(config.cache_layout, old)
    restored = sequence_kv.restore(config.cache_layout, new, rings)
    assert jax.tree.map(jnp.shape, restored) == jax.tree.map(jnp.shape, new)
    local = sequence_kv.local_layers(config.cache_layout)
    for index in config.kv_layers:
        if index in local:
            size = old.layers[index].keys.shape[2]
            np.testing.assert_array_equal(restored.layers[index].keys[:, :, :size], old.layers[index].keys)
        else:
            same(restored.layers[index], new.layers[index])
    np.testing.assert_array_equal(restored.ids, new.ids)
    again = sequence_kv.snapshot(
        config.cache_layout,
        sequence_kv.restore(config.cache_layout, new, sequence_kv.snapshot(config.cache_layout, new)),
    )
    same(again, sequence_kv.snapshot(config.cache_layout, new))


def test_a_layer_that_shares_kv_keeps_none():
    sequence = sequence_kv.empty(CONFIGS["shared KV"].cache_layout, 32, CONTEXT, "float32")
    assert [layer is None for layer in sequence.layers] == [False, False, True, True]
    assert sequence_kv.local_layers(CONFIGS["shared KV"].cache_layout) == [0]
    assert sequence_kv.local_layers(CONFIGS["all global"].cache_layout) == []
    assert sequence_kv.snapshot(CONFIGS["all global"].cache_layout, filled(CONFIGS["all global"], 32)) == ()
