"""The keys and values of all conversations of a model: one pool of pages on the device, and tables of them.

Which page belongs to which conversation is bookkeeping of ``conversations``. Programs take the pool, write the pages
that their tables name, and return it: it is donated, so nothing is copied. Where kernels attend, memory of the pool is
taken as it is written to, and its size costs nothing. Elsewhere it is all there from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.pages import PageSizes
from langchain_gemma_jax.kernels.attention import can_attend, vacant
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.seams.kv_cache import AXES, KVCache, LayerKV, Layers, PageCounts, abstract_layers
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import AttentionForm, Recipe


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KvPool:
    """All pages of a model."""

    layers: Layers  # each layer that owns keys and values: [page, kv_head, slot, head_dim]
    ids: jax.Array  # [page, slot] int32: the tokens, for penalties, at the global layers' pages


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tables:
    """The pages of a program's rows."""

    whole: jax.Array  # [row, entry] int32: of the global layers, and of the ids
    local: jax.Array  # [row, entry] int32: of the local layers

    def over(self, pool: KvPool) -> KVCache:
        """Return the cache that an architecture reads and writes."""
        return KVCache(pool.layers, self.whole, self.local)


def window_of(layout: CacheLayout) -> int | None:
    """Return the largest window of a local layer; None if every layer is global."""
    return max((layer.window for layer in layout if layer and layer.window is not None), default=None)


def attends_by_kernel(layout: CacheLayout, recipe: Recipe) -> bool:
    """Return True if kernels follow the tables of every layer: then a table costs nothing but what is filled."""
    heads = {layer.head_dim for layer in layout if layer is not None}
    dtype = jnp.dtype(recipe.kv_dtype)
    return recipe.attention is AttentionForm.KERNEL and all(can_attend(size, dtype) for size in heads)


@lru_cache(maxsize=256)  # called several times for each request
def page_bytes(layout: CacheLayout, dtype: str, slots: int) -> PageSizes:
    """Return the bytes of the pages."""
    sums = {True: 4 * slots, False: 0}
    for layer, spec in zip(layout, abstract_layers(layout, PageCounts(1, 1, slots), dtype), strict=True):
        if layer is not None and spec is not None:
            sums[layer.window is None] += 2 * int(spec.size) * int(spec.dtype.itemsize)
    return PageSizes(sums[True], sums[False])


def abstract_pool(layout: CacheLayout, counts: PageCounts, dtype: str) -> KvPool:
    """Return the shapes of a pool."""
    layers = tuple(
        None if spec is None else LayerKV(spec, spec)  # type: ignore[arg-type]  # shapes in the place of arrays
        for spec in abstract_layers(layout, counts, dtype)
    )
    return KvPool(layers, jax.ShapeDtypeStruct((counts.whole, counts.slots), jnp.int32))  # type: ignore[arg-type]


def shardings(where: Placement, tree: Any) -> Any:
    """Return the shardings of the arrays, or shapes, in a tree: the placement's for each ``LayerKV``."""

    def of(leaf: Any) -> Any:
        if isinstance(leaf, LayerKV):
            home = where.sharding(leaf.keys.shape, AXES)
            return LayerKV(home, home)  # type: ignore[arg-type]  # shardings in the place of arrays
        return where.sharding(leaf.shape)

    return jax.tree.map(of, tree, is_leaf=lambda leaf: isinstance(leaf, LayerKV))


# The rest is for use inside a jitted program.


def empty(layout: CacheLayout, counts: PageCounts, recipe: Recipe) -> KvPool:
    """Return a pool without tokens. What is in its pages has no meaning."""
    make = vacant if attends_by_kernel(layout, recipe) else jnp.zeros
    shapes = abstract_pool(layout, counts, recipe.kv_dtype)
    return jax.tree.map(lambda spec: make(spec.shape, spec.dtype), shapes)  # type: ignore[no-any-return]


def note_ids(pool: KvPool, table: jax.Array, tokens: jax.Array, start: jax.Array, count: jax.Array) -> KvPool:
    """Write the ids of a chunk ``[row, token]``, its padding to page 0."""
    slots = pool.ids.shape[1]
    token = jnp.arange(tokens.shape[1])[None, :]
    at = start[:, None] + token
    entry = jnp.minimum(at // slots, table.shape[1] - 1)
    page = jnp.where(token < count[:, None], jnp.take_along_axis(table, entry, axis=1), 0)
    ids = pool.ids.at[page, jnp.mod(at, slots)].set(tokens, mode="drop")
    return KvPool(pool.layers, ids)


def copy_pages(pool: KvPool, layout: CacheLayout, source: Tables, target: Tables) -> KvPool:
    """Copy pages to others: those in ``source`` to those at the same place in ``target``, each ``[page]``."""

    def copied(array: jax.Array, come: jax.Array, go: jax.Array) -> jax.Array:
        return array.at[go].set(array[come], mode="drop")

    return _each_kind(layout, pool, copied, source, target)


def take_pages(pool: KvPool, layout: CacheLayout, tables: Tables) -> KvPool:
    """Return copies of pages: a pool of those that are named, each kind ``[page]``."""
    return _each_kind(layout, pool, lambda array, pages: array[pages], tables)


def put_pages(pool: KvPool, layout: CacheLayout, tables: Tables, contents: KvPool) -> KvPool:
    """Write pages: ``contents`` is what ``take_pages`` returns."""

    def written(array: jax.Array, new: jax.Array, pages: jax.Array) -> jax.Array:
        return array.at[pages].set(new, mode="drop")

    layers = tuple(
        None if layer is None else jax.tree.map(partial(written, pages=_of_kind(layer, tables)), old, new)
        for layer, old, new in zip(layout, pool.layers, contents.layers, strict=True)
    )
    return KvPool(layers, written(pool.ids, contents.ids, tables.whole))


def _each_kind(layout: CacheLayout, pool: KvPool, work: Callable[..., jax.Array], *tables: Tables) -> KvPool:
    """Return the arrays of ``work(array, *pages)``, where the pages are those of the array's kind."""
    layers = tuple(
        None
        if layer is None
        else jax.tree.map(lambda array, layer=layer: work(array, *(_of_kind(layer, each) for each in tables)), kept)
        for layer, kept in zip(layout, pool.layers, strict=True)
    )
    return KvPool(layers, work(pool.ids, *(each.whole for each in tables)))


def _of_kind(layer: CacheLayer, tables: Tables) -> jax.Array:
    return tables.whole if layer.window is None else tables.local
