"""A conversation's state on the device, and what can be done with it as a whole.

A ``SequenceKV`` belongs to one conversation from its first token to its eviction. Rows of a step are
sequences that meet there for the moment: nothing is copied when one joins or leaves.

Which of its slots hold something follows from how many tokens it has, which only the host knows.
Forgetting the last tokens therefore costs nothing, as long as the rings still hold the window
before them (``prefix.Rings``); else the rings are restored from a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models import kv_cache
from langchain_gemma_jax.models.config import ModelConfig
from langchain_gemma_jax.models.kv_cache import STEP_SLACK, KVCache, LayerKV


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SequenceKV:
    """One conversation on the device."""

    layers: KVCache  # a layer that owns KV: [1, kv_head, slot, head_dim]
    ids: jax.Array  # [position] int32: the tokens, for penalties


RingArrays: TypeAlias = tuple[LayerKV, ...]
"""A snapshot: the rings of the local layers, as they were at some length."""


def physical(capacity: int) -> int:
    """Slots of a global layer. The slack takes the padding of a last, short chunk."""
    return capacity + STEP_SLACK


def ring_size(config: ModelConfig, capacity: int) -> int | None:
    """Slots of the smallest ring at this capacity; None if every layer is global."""
    sizes = [kv_cache.slots(config.layers[i], physical(capacity)) for i in local_layers(config)]
    return min(sizes, default=None)


def sequence_bytes(config: ModelConfig, capacity: int, max_context: int, dtype: str) -> int:
    """What one sequence occupies."""
    shapes = kv_cache.abstract_cache(config, 1, physical(capacity), dtype)
    layers = sum(2 * int(s.size) * int(s.dtype.itemsize) for s in shapes if s is not None)
    return layers + 4 * physical(max_context)


def snapshot_bytes(config: ModelConfig, capacity: int, dtype: str) -> int:
    """What a snapshot of its rings occupies."""
    shapes = kv_cache.abstract_cache(config, 1, physical(capacity), dtype)
    return sum(2 * int(s.size) * int(s.dtype.itemsize) for i in local_layers(config) if (s := shapes[i]) is not None)


def local_layers(config: ModelConfig) -> list[int]:
    """The layers that keep a ring."""
    return [index for index in config.kv_layers if config.layers[index].is_local]


# The rest is for inside a jitted program.


def empty(config: ModelConfig, capacity: int, max_context: int, dtype: str) -> SequenceKV:
    """A sequence without tokens."""
    layers = kv_cache.allocate(config, 1, physical(capacity), dtype)
    return SequenceKV(layers, jnp.zeros(physical(max_context), jnp.int32))


def resize(config: ModelConfig, sequence: SequenceKV, capacity: int) -> SequenceKV:
    """A copy of the same tokens in a cache of another, or the same, capacity. A smaller one has to hold them all."""
    dtype = next(layer.keys.dtype for layer in sequence.layers if layer is not None)
    shapes = kv_cache.abstract_cache(config, 1, physical(capacity), dtype.name)
    layers = tuple(
        None if old is None or shape is None else LayerKV(_fit(old.keys, shape), _fit(old.values, shape))
        for old, shape in zip(sequence.layers, shapes, strict=True)
    )
    return SequenceKV(layers, jnp.copy(sequence.ids))


def snapshot(config: ModelConfig, sequence: SequenceKV) -> RingArrays:
    """A copy of the rings."""
    return tuple(jax.tree.map(jnp.copy, _owned(sequence.layers[i])) for i in local_layers(config))


def restore(config: ModelConfig, sequence: SequenceKV, rings: RingArrays) -> SequenceKV:
    """The sequence with copies of these rings in place of its own."""
    layers = list(sequence.layers)
    for index, ring in zip(local_layers(config), rings, strict=True):
        shape = jax.ShapeDtypeStruct(_owned(layers[index]).keys.shape, ring.keys.dtype)
        layers[index] = LayerKV(_fit(ring.keys, shape), _fit(ring.values, shape))
    return SequenceKV(tuple(layers), sequence.ids)


def _fit(old: jax.Array, shape: jax.ShapeDtypeStruct) -> jax.Array:
    """The first slots, as many as both have. A ring whose size changes never wrapped: its slots are positions."""
    if old.shape == shape.shape:
        return jnp.copy(old)
    first = jax.lax.slice_in_dim(old, 0, min(old.shape[2], shape.shape[2]), axis=2)
    return jax.lax.dynamic_update_slice(jnp.zeros(shape.shape, shape.dtype), first, (0, 0, 0, 0))


def _owned(layer: LayerKV | None) -> LayerKV:
    if layer is None:
        raise TypeError("expected a layer that owns KV, found one that shares another's")
    return layer
