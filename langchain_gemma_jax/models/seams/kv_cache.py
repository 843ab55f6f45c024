"""The key-value cache that the forward pass reads and writes: one pair of arrays per layer.

A global layer keeps every position, so its slot *is* the position. A local layer keeps a ring of
the last ``window + STEP_SLACK`` positions, slot = position mod size. A layer that shares another's
KV keeps nothing. The position that a slot holds follows from the number of tokens read, so it is not
stored. To drop the last tokens, continue from a smaller ``start``.

Because of the slack, a short step can write before it reads and overwrites no position that its
first token still sees. Up to ``STEP_SLACK`` tokens can also be dropped without losing one that the
window needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.abstract import Axes
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout, LayerConfig

STEP_SLACK = 16
AXES: Axes = ("row", "kv_heads", "slot", "head_dim")  # of keys and of values: their names to a ``Placement``


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerKV:
    """One layer's keys and values."""

    keys: jax.Array  # [row, kv_head, slot, head_dim]
    values: jax.Array  # [row, kv_head, slot, head_dim]


KVCache: TypeAlias = tuple[LayerKV | None, ...]
"""One entry per layer; None where the layer owns no KV."""


def slots(layer: CacheLayer | LayerConfig, capacity: int) -> int:
    """Return the number of positions that a layer keeps of a context of ``capacity``."""
    return capacity if layer.window is None else min(capacity, layer.window + STEP_SLACK)


def abstract_cache(
    layout: CacheLayout, rows: int, capacity: int, dtype: str
) -> tuple[jax.ShapeDtypeStruct | None, ...]:
    """Return the shape of each layer's ``keys`` (and ``values``). Allocation and the ledger both use it."""
    return tuple(
        jax.ShapeDtypeStruct((rows, layer.kv_heads, slots(layer, capacity), layer.head_dim), jnp.dtype(dtype))
        if layer is not None
        else None
        for layer in layout
    )


def allocate(layout: CacheLayout, rows: int, capacity: int, dtype: str, device: jax.Device | None = None) -> KVCache:
    """Return an empty cache, on ``device`` if it is given.

    Give it for weights that were put on a device, as ``load`` does: to ``jit``, a cache that is not bound to a
    device has another signature than the one that a program returns, and the program compiles twice.
    """

    def empty(spec: jax.ShapeDtypeStruct) -> jax.Array:
        return jnp.zeros(spec.shape, spec.dtype, device=device)

    return tuple(
        None if spec is None else LayerKV(empty(spec), empty(spec))
        for spec in abstract_cache(layout, rows, capacity, dtype)
    )


def slot_positions(end: jax.Array, size: int) -> jax.Array:
    """Return the position in each slot once ``end [row]`` tokens are written; negative: none yet. ``[row, slot]``."""
    last = end[:, None] - 1
    return last - jnp.mod(last - jnp.arange(size)[None, :], size)


def write_span(old: LayerKV, keys: jax.Array, values: jax.Array, slot: jax.Array, *, in_loop: bool = False) -> LayerKV:
    """Write ``[row, kv_head, token, head_dim]`` in place from ``slot [row]`` on. It has to fit without wrapping.

    ``in_loop``: see ``Recipe.write_in_loop``.
    """

    def put(cache: jax.Array, new: jax.Array) -> jax.Array:
        target, source = _as_bits(cache), _as_bits(new)
        for row in range(new.shape[0]):
            target = jax.lax.dynamic_update_slice(target, source[row : row + 1], (row, 0, slot[row], 0))
        return jax.lax.bitcast_convert_type(target, cache.dtype)

    def put_both(cache: LayerKV) -> LayerKV:
        return LayerKV(put(cache.keys, new.keys), put(cache.values, new.values))

    new = LayerKV(keys.astype(old.keys.dtype), values.astype(old.values.dtype))
    if not in_loop:
        return put_both(old)
    first = jnp.minimum(slot[0], 0)  # always zero, but XLA cannot prove it, and so does not drop the loop
    _, cache = jax.lax.while_loop(
        lambda state: state[0] < 1, lambda state: (state[0] + 1, put_both(state[1])), (first, old)
    )
    return cache


def _as_bits(x: jax.Array) -> jax.Array:
    # XLA:CPU of JAX 0.9 updates a bfloat16 array by converting all of it to float32 and back, in each step
    # (measured: 138 us an update at 8192 slots, and 6 us for the same bits as integers).
    return jax.lax.bitcast_convert_type(x, jnp.uint16) if x.dtype.itemsize == 2 else x


def rewrite_ring(old: LayerKV, keys: jax.Array, values: jax.Array, start: jax.Array, count: jax.Array) -> LayerKV:
    """Return the ring after a chunk: its first ``count`` tokens take their slots, and the other slots stay."""
    size, tokens = old.keys.shape[2], keys.shape[2]
    token = slot_positions(start + count, size) - start[:, None]  # [row, slot]: negative keeps the old position
    is_new = (token >= 0)[:, None, :, None]
    index = jnp.clip(token, 0, tokens - 1)[:, None, :, None]

    def merge(cache: jax.Array, new: jax.Array) -> jax.Array:
        return jnp.where(is_new, jnp.take_along_axis(new.astype(cache.dtype), index, axis=2), cache)

    return LayerKV(merge(old.keys, keys), merge(old.values, values))
