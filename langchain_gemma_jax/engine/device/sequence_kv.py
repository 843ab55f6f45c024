"""A conversation's state on the device, and the operations on it as a whole.

A ``SequenceKV`` belongs to one conversation from its first token to its eviction. A step's rows are separate sequences:
nothing is copied when one joins or leaves.

The number of its tokens, which only the host keeps, says which slots are in use. So dropping the last tokens costs
nothing, as long as the rings still hold the window before them (``prefix_index.Rings``); otherwise the rings are
restored from a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.model_config import CacheLayout
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import AXES, STEP_SLACK, KVCache, LayerKV
from langchain_gemma_jax.models.seams.placement import Placement


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SequenceKV:
    """One conversation on the device."""

    layers: KVCache  # each layer that owns KV: [1, kv_head, slot, head_dim]
    ids: jax.Array  # [position] int32: the tokens, for penalties


RingArrays: TypeAlias = tuple[LayerKV, ...]
"""A snapshot: copies of the local layers' rings at some length."""


def physical(capacity: int) -> int:
    """Return the slots of a global layer. The slack is for the padding of a last, short chunk."""
    return capacity + STEP_SLACK


def ring_size(layout: CacheLayout, capacity: int) -> int | None:
    """Return the slots of the smallest ring at this capacity; None if every layer is global."""
    sizes = [kv_cache.slots(layer, physical(capacity)) for layer in layout if layer and layer.window is not None]
    return min(sizes, default=None)


def smallest_window(layout: CacheLayout) -> int | None:
    """Return the smallest window of a local layer; None if every layer is global."""
    return min((layer.window for layer in layout if layer and layer.window is not None), default=None)


@lru_cache(maxsize=256)  # called several times for each request
def sequence_bytes(layout: CacheLayout, capacity: int, max_context: int, dtype: str) -> int:
    """Return the bytes of one sequence."""
    shapes = kv_cache.abstract_cache(layout, 1, physical(capacity), dtype)
    layers = sum(2 * int(s.size) * int(s.dtype.itemsize) for s in shapes if s is not None)
    return layers + 4 * physical(max_context)


@lru_cache(maxsize=256)
def snapshot_bytes(layout: CacheLayout, capacity: int, dtype: str) -> int:
    """Return the bytes of a snapshot of a sequence's rings."""
    shapes = kv_cache.abstract_cache(layout, 1, physical(capacity), dtype)
    return sum(2 * int(s.size) * int(s.dtype.itemsize) for i in local_layers(layout) if (s := shapes[i]) is not None)


def local_layers(layout: CacheLayout) -> list[int]:
    """Return the indices of the layers that have a ring."""
    return [index for index, layer in enumerate(layout) if layer is not None and layer.window is not None]


def shardings(where: Placement, tree: Any) -> Any:
    """Return the shardings of the arrays, or shapes, in a tree: the placement's for each ``LayerKV``."""

    def of(leaf: Any) -> Any:
        if isinstance(leaf, LayerKV):
            home = where.sharding(leaf.keys.shape, AXES)
            return LayerKV(home, home)  # type: ignore[arg-type]  # shardings in the place of arrays
        return where.sharding(leaf.shape)

    return jax.tree.map(of, tree, is_leaf=lambda leaf: isinstance(leaf, LayerKV))


# The rest is for use inside a jitted program.


def empty(layout: CacheLayout, capacity: int, max_context: int, dtype: str) -> SequenceKV:
    """Return a sequence without tokens."""
    layers = kv_cache.allocate(layout, 1, physical(capacity), dtype)
    return SequenceKV(layers, jnp.zeros(physical(max_context), jnp.int32))


def resize(layout: CacheLayout, sequence: SequenceKV, capacity: int) -> SequenceKV:
    """Return a copy of a sequence with another, or the same, capacity. A smaller one must still hold all tokens."""
    dtype = next(layer.keys.dtype for layer in sequence.layers if layer is not None)
    shapes = kv_cache.abstract_cache(layout, 1, physical(capacity), dtype.name)
    layers = tuple(
        None if old is None or shape is None else LayerKV(_fit(old.keys, shape), _fit(old.values, shape))
        for old, shape in zip(sequence.layers, shapes, strict=True)
    )
    return SequenceKV(layers, jnp.copy(sequence.ids))


def snapshot(layout: CacheLayout, sequence: SequenceKV) -> RingArrays:
    """Return a copy of the rings."""
    return tuple(jax.tree.map(jnp.copy, _owned(sequence.layers[i])) for i in local_layers(layout))


def restore(layout: CacheLayout, sequence: SequenceKV, rings: RingArrays) -> SequenceKV:
    """Return the sequence with copies of these rings in place of its own."""
    layers = list(sequence.layers)
    for index, ring in zip(local_layers(layout), rings, strict=True):
        shape = jax.ShapeDtypeStruct(_owned(layers[index]).keys.shape, ring.keys.dtype)
        layers[index] = LayerKV(_fit(ring.keys, shape), _fit(ring.values, shape))
    return SequenceKV(tuple(layers), sequence.ids)


def _fit(old: jax.Array, shape: jax.ShapeDtypeStruct) -> jax.Array:
    """Copy the slots that both shapes have. A ring whose size changes has never wrapped: its slots are positions."""
    if old.shape == shape.shape:
        return jnp.copy(old)
    first = jax.lax.slice_in_dim(old, 0, min(old.shape[2], shape.shape[2]), axis=2)
    return jax.lax.dynamic_update_slice(jnp.zeros(shape.shape, shape.dtype), first, (0, 0, 0, 0))


def _owned(layer: LayerKV | None) -> LayerKV:
    if layer is None:
        raise TypeError("expected a layer that owns KV, found one that shares another's")
    return layer
