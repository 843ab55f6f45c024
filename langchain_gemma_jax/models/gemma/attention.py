"""Attention of a chunk of new tokens over itself and the cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels import fused_ops
from langchain_gemma_jax.kernels.attention import Places, can_attend, write_and_attend
from langchain_gemma_jax.kernels.attention import attend as attend_by_kernel
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig
from langchain_gemma_jax.models.gemma.norms import rms_norm, soft_cap, with_derivative
from langchain_gemma_jax.models.gemma.rope import rotate
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import LayerKV
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.recipe import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import Layer

# Numbers in a head's keys. Up to this size one product for all heads is as fast (measured), and a program with fewer
# products compiles and loads in two thirds of the time.
FEW_NUMBERS = 70_000


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class VisibleKV:
    """The keys and values that one layer's queries may attend to."""

    keys: jax.Array  # [row, kv_head, slot, head_dim]
    values: jax.Array  # [row, kv_head, slot, head_dim]
    positions: jax.Array  # [row, slot]; negative: an empty slot


def project(
    x: jax.Array,
    weights: Layer,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
    sin_cos: tuple[jax.Array, jax.Array],
    real: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    """Return queries ``[row, token, head, head_dim]``; keys and values ``[row, kv_head, token, head_dim]`` if owned.

    ``real``: the number of tokens before the padding, see ``linear``.
    """
    rows, tokens, _ = x.shape
    # [row, token, head, head_dim]: query heads, then key heads, then value heads, as far as the layer has them
    heads = linear(x, weights["qkv"], recipe.layers, real).reshape(rows, tokens, -1, layer.head_dim)
    if layer.owns_kv and recipe.between is BetweenForm.KERNEL and fused_ops.can_turn(layer.head_dim):
        return _heads_by_kernel(heads, weights, config, layer, sin_cos)
    return _split_heads(heads, weights, config, layer, sin_cos, recipe.between)


def _heads_by_kernel(
    heads: jax.Array, weights: Layer, config: ModelConfig, layer: LayerConfig, sin_cos: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    norms = (weights["q_norm"], weights["k_norm"]) if config.qk_norm else ()

    def kernel(heads: jax.Array, sin: jax.Array, cos: jax.Array, *norms: jax.Array) -> Any:
        scales = (norms[0], norms[1]) if norms else None
        return fused_ops.heads(
            heads,
            (sin, cos),
            scales,
            config.heads,
            layer.kv_heads,
            value_norm=config.v_norm,
            eps=config.norm_eps,
            size=config.attention_scale,
        )

    def plain(heads: jax.Array, sin: jax.Array, cos: jax.Array, *norms: jax.Array) -> Any:
        scales = dict(zip(("q_norm", "k_norm"), norms, strict=False))
        return _split_heads(heads, scales, config, layer, (sin, cos), BetweenForm.XLA)

    queries, keys, values = with_derivative(kernel, plain, heads, *sin_cos, *norms)
    return queries, keys, values


def _split_heads(
    heads: jax.Array,
    weights: Layer,
    config: ModelConfig,
    layer: LayerConfig,
    sin_cos: tuple[jax.Array, jax.Array],
    form: BetweenForm,
) -> tuple[jax.Array, jax.Array | None, jax.Array | None]:
    split = [config.heads, config.heads + layer.kv_heads, config.heads + 2 * layer.kv_heads]
    queries = heads[:, :, : split[0]]
    if config.qk_norm:
        queries = rms_norm(queries, weights["q_norm"], config.norm_eps, form)
    queries = rotate(queries, sin_cos) * config.attention_scale
    if not layer.owns_kv:
        return queries, None, None
    keys = heads[:, :, split[0] : split[1]]
    values = keys if layer.k_eq_v else heads[:, :, split[1] : split[2]]
    if config.qk_norm:
        keys = rms_norm(keys, weights["k_norm"], config.norm_eps, form)
    if config.v_norm:
        values = rms_norm(values, None, config.norm_eps, form)
    return queries, rotate(keys, sin_cos).swapaxes(1, 2), values.swapaxes(1, 2)


def chunk_alone(keys: jax.Array, values: jax.Array, count: jax.Array, dtype: str) -> VisibleKV:
    """Return the keys and values of a chunk without a cache: the chunk itself, without its padding."""
    at = jnp.arange(keys.shape[2])[None, :]
    return VisibleKV(keys.astype(dtype), values.astype(dtype), jnp.where(at < count[:, None], at, -1))


def is_by_kernel(head_dim: int, recipe: Recipe) -> bool:
    """Return True if a kernel attends, and follows the tables of pages; otherwise XLA gathers them."""
    return recipe.attention is AttentionForm.KERNEL and can_attend(head_dim, jnp.dtype(recipe.kv_dtype))


New: TypeAlias = tuple[jax.Array, jax.Array] | None
"""A chunk's keys and values ``[row, kv_head, token, head_dim]``, to be written; None: the layer has none of its own."""


def attend_in_pages(
    queries: jax.Array,
    places: Places,
    table: jax.Array,
    pages: LayerKV,
    new: New,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
) -> tuple[jax.Array, LayerKV]:
    """Write a chunk's keys and values, and attend from its queries ``[row, token, head, head_dim]``.

    Return ``[row, token, heads * head_dim]`` and the pages. What is made of padding has no meaning.
    """
    way = _by_kernel if is_by_kernel(layer.head_dim, recipe) else _by_products
    return way(queries, places, table, pages, new, config, layer, recipe)


def _by_products(
    queries: jax.Array,
    places: Places,
    table: jax.Array,
    pages: LayerKV,
    new: New,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
) -> tuple[jax.Array, LayerKV]:
    if new is not None:
        pages = kv_cache.write(pages, table, *new, places.first, places.count)
    end = jnp.maximum(places.first + places.count, places.until)
    seen = VisibleKV(*kv_cache.gather(pages, table, end, recipe.kv_dtype))
    positions = places.first[:, None] + jnp.arange(queries.shape[1])[None, :]
    mixed = attend(pages.turned(queries), positions, seen, config, layer, recipe, places.until)
    return pages.turned(mixed.reshape(queries.shape)).reshape(mixed.shape) if pages.rounded else mixed, pages


@partial(jax.custom_jvp, nondiff_argnums=(5, 6, 7))
def _by_kernel(
    queries: jax.Array,
    places: Places,
    table: jax.Array,
    pages: LayerKV,
    new: New,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
) -> tuple[jax.Array, LayerKV]:
    del recipe
    window, cap = layer.window, config.attention_softcap
    arrays = (pages.keys, pages.values)
    if new is None:
        return attend_by_kernel(queries, places, table, arrays, window=window, cap=cap), pages
    mixed, keys, values = write_and_attend(queries, places, table, arrays, new, window=window, cap=cap)
    return mixed, LayerKV(keys, values)


@_by_kernel.defjvp
def _derivative(
    config: ModelConfig, layer: LayerConfig, recipe: Recipe, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    def plain(queries: jax.Array, places: Places, table: jax.Array, pages: LayerKV, new: New) -> Any:
        return _by_products(queries, places, table, pages, new, config, layer, recipe)

    result: tuple[Any, Any] = jax.jvp(plain, primals, tangents)
    return result


def attend(
    queries: jax.Array,
    positions: jax.Array,
    seen: VisibleKV,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
    until: jax.Array | None = None,
) -> jax.Array:
    """Attend from queries at ``positions [row, token]`` to the visible keys: ``[row, token, heads * head_dim]``.

    ``until [row]``: a query also sees later positions, up to there.
    """
    rows, tokens, heads, head_dim = queries.shape
    group = heads // layer.kv_heads
    # [row, kv_head, head of its group and token, head_dim]
    grouped = queries.astype(seen.keys.dtype).reshape(rows, tokens, layer.kv_heads, group, head_dim)
    grouped = grouped.transpose(0, 2, 3, 1, 4).reshape(rows, layer.kv_heads, group * tokens, head_dim)
    both_ways = config.embedding is not None
    visible = _visible(positions, seen.positions, layer.window, both_ways=both_ways, until=until)
    visible = jnp.tile(visible, (1, group, 1))
    pairs_of = rows * layer.kv_heads
    few = pairs_of > 1 and seen.keys.shape[2] * head_dim <= FEW_NUMBERS
    if pairs_of <= recipe.attention_pairs and not few:
        pairs = [
            [_mix(grouped[r, k], seen.keys[r, k], seen.values[r, k], visible[r], config) for k in range(layer.kv_heads)]
            for r in range(rows)
        ]
        mixed = jnp.stack([jnp.stack(row) for row in pairs])
    else:
        over_heads = jax.vmap(_mix, in_axes=(0, 0, 0, None, None))
        mixed = jax.vmap(over_heads, in_axes=(0, 0, 0, 0, None))(grouped, seen.keys, seen.values, visible, config)
    mixed = mixed.reshape(rows, layer.kv_heads, group, tokens, head_dim)
    if tokens > 1:
        return mixed.transpose(0, 3, 1, 2, 4).reshape(rows, tokens, heads * head_dim)
    # A token's heads are concatenated, not reshaped: XLA:CPU fuses a reshape into the one-row product that follows, and
    # then indexes element by element (measured: the output projections take four times as long).
    return jnp.concatenate([mixed[:, k, g] for k in range(layer.kv_heads) for g in range(group)], axis=-1)


def _visible(
    query_at: jax.Array,
    key_at: jax.Array,
    window: int | None,
    *,
    both_ways: bool = False,
    until: jax.Array | None = None,
) -> jax.Array:
    """Return the mask of the slots that each query may see: ``[row, token, slot]``.

    ``both_ways``: it sees later positions too, within the window. ``until``: it sees all later positions up to there.
    """
    key_at, query_at = key_at[:, None, :], query_at[:, :, None]
    if both_ways:
        there = jnp.broadcast_to(key_at >= 0, (query_at.shape[0], query_at.shape[1], key_at.shape[2]))
        return there if window is None else there & (jnp.abs(key_at - query_at) < window)
    last = query_at if until is None else jnp.maximum(query_at, until[:, None, None] - 1)
    visible = (key_at >= 0) & (key_at <= last)
    return visible if window is None else visible & (key_at > query_at - window)


def _mix(queries: jax.Array, keys: jax.Array, values: jax.Array, visible: jax.Array, config: ModelConfig) -> jax.Array:
    """Attend from ``[query, head_dim]`` to ``[slot, head_dim]``: float32 ``[query, head_dim]``."""
    exact = jax.lax.Precision.HIGHEST if keys.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    scores = jnp.einsum("qd,sd->qs", queries, keys, precision=exact, preferred_element_type=jnp.float32)
    scores = jnp.where(visible, soft_cap(scores, config.attention_softcap), jnp.finfo(jnp.float32).min)
    shares = jax.nn.softmax(scores, axis=-1).astype(values.dtype)
    return jnp.einsum("qs,sd->qd", shares, values, precision=exact, preferred_element_type=jnp.float32)
