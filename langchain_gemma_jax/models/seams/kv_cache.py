"""Keys and values in pages: one pool for all conversations of a model, and tables of the pages that each row has.

A page has slots for some tokens, ``PAGE`` in the engine, in each layer of its kind. Layers are of two kinds: *global*
layers keep every token of a conversation, *local* layers those of their window. Position p of a row is in slot
``p mod slots`` of the page ``table[row, p // slots mod entries]``, so a table of few entries is enough for a window.
Which positions a page holds follows from the table, and is not stored. Dropping the last tokens is going on from a
smaller ``start``.

Page 0 is never given out: XLA writes padding there. A layer that shares another's keys and values has no pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.abstract import Axes
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout, LayerConfig
from langchain_gemma_jax.models.seams.kv_rounding import numbers_of, rounded, turned

PAGE = 64  # tokens
AXES: Axes = ("page", "kv_heads", "slot", "head_dim")  # of keys and of values: their names to a ``Placement``


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayerKV:
    """The pages of one layer. Rounded ones have a scale behind each head, see ``kv_rounding``."""

    keys: jax.Array  # [page, kv_head, slot, head_dim]
    values: jax.Array  # [page, kv_head, slot, head_dim]

    @property
    def rounded(self) -> bool:
        """True if keys and values are turned, and rounded to eight bits."""
        return bool(self.keys.dtype == jnp.int8)

    def turned(self, x: jax.Array) -> jax.Array:
        """Return queries ``[..., head_dim]`` as these keys are turned, or what came of these values turned back."""
        return turned(x) if self.rounded else x


Layers: TypeAlias = tuple[LayerKV | None, ...]
"""One entry per layer; None where the layer owns no keys and values."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KVCache:
    """The pages of all layers, and where each row's tokens are in them."""

    layers: Layers
    whole: jax.Array  # [row, entry] int32: pages of the global layers
    local: jax.Array  # [row, entry] int32: pages of the local layers

    def table(self, layer: CacheLayer | LayerConfig) -> jax.Array:
        """Return the table for a layer."""
        return self.whole if layer.window is None else self.local

    def with_layers(self, layers: Layers) -> KVCache:
        """Return the same tables over other pages."""
        return replace(self, layers=layers)


@dataclass(frozen=True)
class PageCounts:
    """The number of pages of each kind, page 0 included, and the slots of each."""

    whole: int
    local: int
    slots: int = PAGE

    def of(self, layer: CacheLayer) -> int:
        """Return the number of pages of a layer."""
        return self.whole if layer.window is None else self.local


def abstract_layers(layout: CacheLayout, counts: PageCounts, dtype: str) -> tuple[jax.ShapeDtypeStruct | None, ...]:
    """Return the shape of each layer's keys (and values). Allocation and the ledger both use it.

    ``dtype``: of those that are not rounded.
    """
    return tuple(
        None
        if layer is None
        else jax.ShapeDtypeStruct(
            (counts.of(layer), layer.kv_heads, counts.slots, layer.width), jnp.dtype(layer.stored_dtype(dtype))
        )
        for layer in layout
    )


def allocate(
    layout: CacheLayout, rows: int, capacity: int, dtype: str, device: jax.Device | None = None, page: int = PAGE
) -> KVCache:
    """Return an empty cache with room for ``capacity`` tokens a row, on ``device`` if it is given.

    Give it for weights that were put on a device, as ``load`` does: to ``jit``, a cache that is not bound to a
    device has another signature than the one that a program returns, and the program compiles twice.
    """
    each = -(-capacity // page)
    count = 1 + rows * each

    def empty(spec: jax.ShapeDtypeStruct) -> jax.Array:
        return jnp.zeros(spec.shape, spec.dtype, device=device)

    table = jax.device_put(1 + jnp.arange(rows * each, dtype=jnp.int32).reshape(rows, each), device)
    layers = tuple(
        None if spec is None else LayerKV(empty(spec), empty(spec))
        for spec in abstract_layers(layout, PageCounts(count, count, page), dtype)
    )
    return KVCache(layers, table, jnp.copy(table))


def write(
    old: LayerKV, table: jax.Array, keys: jax.Array, values: jax.Array, start: jax.Array, count: jax.Array
) -> LayerKV:
    """Write ``[row, kv_head, token, head_dim]`` in place: the first ``count [row]`` tokens, from ``start [row]`` on."""

    def put(pages: jax.Array, new: jax.Array) -> jax.Array:
        as_stored = rounded(new) if old.rounded else new.astype(pages.dtype)
        given = (pages, as_stored, table, start, count)
        if not (_CONVERTS and pages.dtype.itemsize == 2):
            return _put_slots(*given)
        written: jax.Array = jax.lax.platform_dependent(*given, cpu=_put_pages, default=_put_slots)
        return written

    return LayerKV(put(old.keys, keys), put(old.values, values))


def _put_slots(pages: jax.Array, new: jax.Array, table: jax.Array, start: jax.Array, count: jax.Array) -> jax.Array:
    """Return the pages with tokens in their slots, and padding in page 0."""
    slots, token = pages.shape[2], jnp.arange(new.shape[2])[None, :]
    at = start[:, None] + token  # [row, token]
    page = jnp.take_along_axis(table, jnp.mod(at // slots, table.shape[1]), axis=1)
    page = jnp.where(token < count[:, None], page, 0)
    return pages.at[page, :, jnp.mod(at, slots)].set(new.swapaxes(1, 2), mode="drop")


# XLA:CPU of JAX 0.9 to 0.11.0 updates a bfloat16 array by converting all of it to float32 and back (measured: 70 ms for
# a token in a layer of 3,000 pages). It does not in a loop that replaces a page's bits and does nothing else (0.05 ms).
# Later releases update in place by themselves, and JAX 0.12 would copy for the loop.
_CONVERTS = jax.__version_info__ < (0, 11, 2)


def _put_pages(pages: jax.Array, new: jax.Array, table: jax.Array, start: jax.Array, count: jax.Array) -> jax.Array:
    """Return what ``_put_slots`` does, from a loop over the pages that are written to."""
    rows, heads, tokens, dim = new.shape
    slots = pages.shape[2]
    number = start[:, None] // slots + jnp.arange((tokens + slots - 2) // slots + 1)[None, :]  # [row, page]
    page = jnp.take_along_axis(table, jnp.mod(number, table.shape[1]), axis=1)
    page = jnp.where(number * slots < (start + count)[:, None], page, 0).reshape(-1)
    token = number[:, :, None] * slots + jnp.arange(slots)[None, None, :] - start[:, None, None]  # [row, page, slot]
    is_new = ((token >= 0) & (token < count[:, None, None])).reshape(-1, 1, slots, 1)
    index = jnp.clip(token, 0, tokens - 1).reshape(rows, 1, -1, 1)
    found = jnp.take_along_axis(new, index, axis=2).reshape(rows, heads, -1, slots, dim).swapaxes(1, 2)
    merged = _bits(jnp.where(is_new, found.reshape(-1, heads, slots, dim), pages[page]))

    def put(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        at, kept = state
        one = jax.lax.dynamic_index_in_dim(merged, at)
        bits = jax.lax.dynamic_update_slice(_bits(kept), one, (page[at], 0, 0, 0))
        return at + 1, jax.lax.bitcast_convert_type(bits, kept.dtype)

    first = jnp.minimum(start[0], 0)  # always zero, but XLA cannot prove it, and so does not drop the loop
    return jax.lax.while_loop(lambda state: state[0] < page.size, put, (first, pages))[1]


def _bits(x: jax.Array) -> jax.Array:
    return jax.lax.bitcast_convert_type(x, jnp.uint16)


def gather(
    layer: LayerKV, table: jax.Array, end: jax.Array, dtype: str = "float32"
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the rows' keys and values ``[row, kv_head, slot, head_dim]``, and the positions in ``[row, slot]``.

    Those that were rounded are turned still, and have ``dtype``. ``end [row]``: the number of tokens that are written.
    A negative position: an empty slot.
    """

    def of_rows(pages: jax.Array) -> jax.Array:
        found = pages[table]  # [row, entry, kv_head, slot, dim]
        rows, entries, heads, slots, dim = found.shape
        found = found.swapaxes(1, 2).reshape(rows, heads, entries * slots, dim)
        return numbers_of(found, dtype) if layer.rounded else found

    return of_rows(layer.keys), of_rows(layer.values), slot_positions(table.shape[1], layer.keys.shape[2], end)


def slot_positions(entries: int, slots: int, end: jax.Array) -> jax.Array:
    """Return the position in each slot of a table's pages once ``end [row]`` tokens are written. ``[row, slot]``.

    Negative: none yet.
    """
    last = (end[:, None] - 1) // slots
    page = last - jnp.mod(last - jnp.arange(entries)[None, :], entries)  # [row, entry]
    at = page[:, :, None] * slots + jnp.arange(slots)[None, None, :]
    return jnp.where(at < end[:, None, None], at, -1).reshape(end.shape[0], entries * slots)
