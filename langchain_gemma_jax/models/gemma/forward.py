"""The forward pass: one for every generation, driven by the configuration alone.

    hidden, cache = forward(params, config, recipe, tokens, start, count, cache)
    scores = logits(params, config, recipe, hidden)

A call reads one chunk of new tokens per row, after ``start`` tokens that are already in the cache.
Rows are padded to the chunk's length; padding changes no result. Everything that differs between calls
is traced, so the program depends on shapes alone. Layers are unrolled: a scan over stacked weights
would copy them in each step on CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.attention import Places
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma.attention import New, attend, attend_in_pages, chunk_alone, project
from langchain_gemma_jax.models.gemma.feed_forward import feed_forward, per_layer_input
from langchain_gemma_jax.models.gemma.norms import add_and_norm, rms_norm, soft_cap
from langchain_gemma_jax.models.gemma.rope import rotation
from langchain_gemma_jax.models.gemma.teamwork import ALONE, LookUp, Teamwork
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.seams.linear import linear, used_rows
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder, Sight
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import PLAIN, Layer

Params: TypeAlias = Mapping[str, Any]
"""The tree of ``recipe.abstract(config)``: arrays, ``Weight``s where it has matrices, and ``Layer``s."""


@dataclass(frozen=True)
class SoftChunk:
    """A chunk with all soft tokens of one picture or sound, in the place of text; words may follow them."""

    vectors: jax.Array  # [row, token, width] float32, in the place of embeddings
    sight: Sight
    soft: int | None = None  # so many tokens are soft, and words follow; None: all are

    @classmethod
    def of(cls, encoder: MediaEncoder, vectors: jax.Array) -> SoftChunk:
        """Return the chunk of one medium that an encoder made soft tokens of."""
        return cls(vectors, encoder.sight, encoder.most_soft_tokens if encoder.most_words else None)

    def sees_all_in(self, layer: LayerConfig) -> bool:
        """Return True if, in a layer, its tokens see later tokens of the chunk too."""
        everywhere = self.sight in {Sight.EVERYWHERE, Sight.PREFIX}
        return everywhere or (self.sight is Sight.LOCAL and layer.window is not None)

    def reach(self, layer: LayerConfig) -> LayerConfig:
        """Return a layer as its tokens attend in it: a prefix is seen whole, whatever the layer's window."""
        return replace(layer, window=None) if self.sight is Sight.PREFIX else layer


def forward(
    params: Params,
    config: ModelConfig,
    recipe: Recipe,
    tokens: jax.Array,  # [row, token] int32
    start: jax.Array,  # [row] int32: tokens already in the cache
    count: jax.Array,  # [row] int32: tokens of this chunk that are real; the rest is padding
    cache: KVCache | None,  # None: an embedding model, which reads a text in one chunk
    keep: jax.Array | None = None,  # [row] int32: only this token's output is wanted
    team: Teamwork = ALONE,
    medium: SoftChunk | None = None,
) -> tuple[jax.Array, KVCache | None]:
    """Read a chunk; return the normed hidden states ``[row, token, width]`` and the cache with the chunk added.

    With ``keep``, return one token per row: the rest of the chunk then skips the layers that own no KV.
    Where devices divide the matrices, each runs this with its parts, and ``team`` has their collective operations.
    With a ``medium``, its vectors are read in the place of the embeddings of ``tokens``, but for its words.
    """
    positions = start[:, None] + jnp.arange(tokens.shape[1])[None, :]
    real = _real_rows(tokens, count)
    x, signals = _embedded(params, config, recipe, tokens, team, medium)
    turns = Rotations(positions)
    layers = cast("Sequence[Layer]", params["layers"])
    first_without_kv = config.kv_layers[-1] + 1
    end = start + count
    pages = None if cache is None else list(cache.layers)
    first = start  # position of the first query of each row

    form, eps = recipe.between, config.norm_eps
    h = rms_norm(x, layers[0]["attn_norm"], eps, form)

    for index, (layer, weights) in enumerate(zip(config.layers, layers, strict=True)):
        if index == first_without_kv and keep is not None:
            x, h, positions = _only(keep, x), _only(keep, h), _only(keep, positions)
            signals = None if signals is None else _only(keep, signals)
            turns, first, keep, real = Rotations(positions), first + keep, None, None
        queries, keys, values = project(h, weights, config, layer, recipe, turns.of(layer), real)
        new = None if keys is None or values is None else (keys, values)
        source = index if layer.kv_from is None else layer.kv_from
        if cache is None or pages is None:
            mixed = _attend_alone(queries, positions, new, count, config, layer, recipe)
        else:
            until = end if medium is not None and medium.sees_all_in(layer) else jnp.zeros_like(end)
            places = Places(first, jnp.clip(end - first, 0, queries.shape[1]), until)
            table, owned = cache.table(layer), cast("LayerKV", pages[source])
            reach = layer if medium is None else medium.reach(layer)
            mixed, pages[source] = attend_in_pages(queries, places, table, owned, new, config, reach, recipe)
        h = linear(team.gather_input(index, "attn_out", mixed), weights["attn_out"], recipe.layers, real)
        h = team.sums(index, {"attn_out": h})["attn_out"]
        posts = (weights["post_attn_norm"], weights["post_ffw_norm"]) if config.post_norms else (None, None)
        x, h = add_and_norm(x, h, posts[0], weights["ffw_norm"], eps, form)
        h = feed_forward(x, h, weights, config, recipe, index, team, real)
        last = index + 1 == len(layers)
        if last and keep is not None:
            x, h = _only(keep, x), _only(keep, h)
            signals = None if signals is None else _only(keep, signals)
        to_come = params["final_norm"] if last else layers[index + 1]["attn_norm"]
        if signals is None and not config.layer_scale:
            x, h = add_and_norm(x, h, posts[1], to_come, eps, form)
            continue
        x = x + (h if posts[1] is None else rms_norm(h, posts[1], eps, form))
        if signals is not None:
            h = per_layer_input(x, signals[:, :, index], weights, recipe)
            x = x + rms_norm(h, weights["ple_norm"], eps, form)
        if config.layer_scale:
            x = x * weights["scale"]
        h = rms_norm(x, to_come, eps, form)

    return h, None if cache is None or pages is None else cache.with_layers(tuple(pages))


def _real_rows(tokens: jax.Array, count: jax.Array) -> jax.Array | None:
    """Return the number of rows of products up to the last one that is no padding."""
    rows, columns = tokens.shape
    if rows == 1 < columns:
        return count[0]
    return used_rows(count) if columns == 1 < rows else None


def _embedded(
    params: Params, config: ModelConfig, recipe: Recipe, tokens: jax.Array, team: Teamwork, medium: SoftChunk | None
) -> tuple[jax.Array, jax.Array | None]:
    """Return the input of the first layer, and the per-layer inputs if the model has them."""
    asked = _asked_of_tables(config, recipe, tokens)
    if medium is None or medium.soft is not None:
        rows = team.look_up(params, asked)
        x = rows["embed"] * embed_scale(config, recipe)
        if medium is not None:
            is_soft = jnp.arange(tokens.shape[1])[None, :, None] < jnp.int32(medium.soft)
            x = jnp.where(is_soft, medium.vectors, x)
    else:  # soft tokens are not scaled, and their second embedding is that of padding
        rows = team.look_up(params, {name: each for name, each in asked.items() if name != "embed"})
        x = medium.vectors
    return x, _per_layer_signals(params, config, recipe, rows.get("ple_embed"), x)


def _attend_alone(
    queries: jax.Array,
    positions: jax.Array,
    new: New,
    count: jax.Array,
    config: ModelConfig,
    layer: LayerConfig,
    recipe: Recipe,
) -> jax.Array:
    """Attend from a text to itself, as embedding models do."""
    keys, values = cast("tuple[jax.Array, jax.Array]", new)
    seen = chunk_alone(keys, values, count, recipe.kv_dtype)
    return attend(queries, positions, seen, config, layer, recipe)


def logits(
    params: Params, config: ModelConfig, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None
) -> jax.Array:
    """Return the scores of the next token for hidden states ``[..., width]``: float32 ``[..., vocab]``.

    ``real``: the number of rows before the unused ones, see ``linear``.
    """
    head = params["embed" if config.tied_head else "head"]
    return soft_cap(linear(hidden, head, recipe.embed, real), config.logits_softcap)


def embed_scale(config: ModelConfig, recipe: Recipe) -> float:
    """Return sqrt(width), rounded as in the reference: to the dtype of products."""
    return _rounded(config.width**0.5, recipe)


def _rounded(value: float, recipe: Recipe) -> float:
    return float(np.asarray(value, jnp.dtype(recipe.dtype)))


def _asked_of_tables(config: ModelConfig, recipe: Recipe, tokens: jax.Array) -> dict[str, LookUp]:
    """Return the tables in which the tokens are looked up, with the ids for each."""
    asked: dict[str, LookUp] = {"embed": (tokens, recipe.embed)}
    if (ple := config.per_layer_input) is not None and ple.vocab_size:
        # A multimodal checkpoint's second embedding can be shorter than the first; row 0 replaces the missing rows.
        asked["ple_embed"] = (jnp.where(tokens < ple.vocab_size, tokens, 0), PLAIN)
    return asked


def _per_layer_signals(
    params: Params, config: ModelConfig, recipe: Recipe, rows: jax.Array | None, x: jax.Array
) -> jax.Array | None:
    """Return the second embedding's rows mixed with a projection of the first: ``[row, token, layer, width]``."""
    if (ple := config.per_layer_input) is None:
        return None
    shape = (*x.shape[:-1], len(config.layers), ple.width)
    context = linear(x, params["ple_in"], recipe.layers).reshape(shape) * config.width**-0.5
    context = rms_norm(context, params["ple_in_norm"], config.norm_eps, recipe.between)
    if rows is None:
        return context
    identity = rows.reshape(shape) * _rounded(ple.width**0.5, recipe)
    return jnp.multiply(context + identity, 2.0**-0.5)


def _only(keep: jax.Array, x: jax.Array) -> jax.Array:
    """Return one token per row of ``[row, token, ...]``, with the token axis kept."""
    return jnp.take_along_axis(x, keep.reshape(-1, *(1,) * (x.ndim - 1)), axis=1)


class Rotations:
    """Sines and cosines at the chunk's positions, computed once per rope and head size."""

    def __init__(self, positions: jax.Array) -> None:
        self._positions = positions
        self._known: dict[tuple[Rope, int], tuple[jax.Array, jax.Array]] = {}

    def of(self, layer: LayerConfig) -> tuple[jax.Array, jax.Array]:
        key = (layer.rope, layer.head_dim)
        if key not in self._known:
            self._known[key] = rotation(layer.rope, layer.head_dim, self._positions)
        return self._known[key]
