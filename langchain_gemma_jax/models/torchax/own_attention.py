"""The pass of models that attend by their own code: they get all keys and values of a row, and a mask of numbers.

Their code takes no other attention (alibi, a list of classes), or makes keys and values of what its cache keeps
(latents). Keys and values of a place are of any two shapes: where these differ, they are stored as one vector, cut in
halves. A gathered table has the keys in the order of their positions, so key number j is position j.

The code's use of positions cannot be checked without numbers, so such a model is served if its family is in
``FAMILIES``, each of which is compared with torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.torchax.masks import MaskFunction, MaskRule
from langchain_gemma_jax.models.torchax.traced_pass import AttentionAsked, Views

FAMILIES = frozenset({"biogpt", "bloom", "deepseek_v2", "deepseek_v3", "falcon", "minicpm3", "mpt", "opt", "xglm"})
"""The ``model_type`` of those that are tested."""


@dataclass(frozen=True)
class KeptShapes:
    """The shapes ``(heads, head_dim)`` that a layer keeps of each token."""

    keys: tuple[int, int]
    values: tuple[int, int]

    @property
    def layer(self) -> CacheLayer:
        """The cache of the layer: as it is if both are alike, else two halves of one vector."""
        if self.keys == self.values:
            return CacheLayer(*self.keys)
        return CacheLayer(1, -(-(prod(self.keys) + prod(self.values)) // 2))

    def packed(self, keys: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return ``[row, head, token, head_dim]`` of keys and of values as they are stored."""
        if self.keys == self.values:
            return keys, values
        flat = jnp.concatenate([_flat(keys), _flat(values)], axis=-1)
        half = self.layer.head_dim
        flat = jnp.pad(flat, ((0, 0), (0, 0), (0, 2 * half - flat.shape[-1])))
        return flat[:, None, :, :half], flat[:, None, :, half:]

    def unpacked(self, keys: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return keys and values for those that ``packed`` made."""
        if self.keys == self.values:
            return keys, values
        flat = jnp.concatenate([keys[:, 0], values[:, 0]], axis=-1)
        ends = prod(self.keys), prod(self.keys) + prod(self.values)
        return _heads(flat[..., : ends[0]], self.keys), _heads(flat[..., ends[0] : ends[1]], self.values)


def _flat(array: jax.Array) -> jax.Array:
    rows, heads, tokens, head_dim = array.shape
    return array.swapaxes(1, 2).reshape(rows, tokens, heads * head_dim)


def _heads(flat: jax.Array, shape: tuple[int, int]) -> jax.Array:
    return flat.reshape(*flat.shape[:2], *shape).swapaxes(1, 2)


@dataclass
class OwnLayoutPass:
    """A pass without numbers, which records the shapes that each layer keeps."""

    torch: Any
    tokens: int
    kept: dict[int, KeptShapes] = field(default_factory=dict)
    slots: int = 24  # keys that a layer is given: more than the tokens of the call

    @property
    def before(self) -> int:
        return self.slots - self.tokens

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        if layer in self.kept:
            raise UnsupportedModelError(f"Layer {layer} writes to its cache twice in a pass; expected once.")
        found = [(int(each.shape[1]), int(each.shape[3])) for each in (keys, values)]
        self.kept[layer] = KeptShapes(*found)
        rows, make = keys.shape[0], self.torch.empty
        return tuple(make((rows, *each[:1], self.slots, *each[1:]), dtype=keys.dtype) for each in found)

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        del function
        return self.torch.empty((1, 1, self.tokens, self.slots), dtype=dtype)

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        del queries, keys, values, asked
        raise _not_own()

    def shapes(self, layers: int) -> tuple[KeptShapes, ...]:
        """Return what each layer keeps.

        Raises:
            UnsupportedModelError: a layer keeps nothing.
        """
        if sorted(self.kept) != list(range(layers)):
            raise UnsupportedModelError(
                f"{len(self.kept)} of {layers} layers keep keys and values: the others keep something else."
            )
        return tuple(self.kept[layer] for layer in range(layers))


def layout_of(shapes: Sequence[KeptShapes]) -> CacheLayout:
    """Return the cache of each layer. All keep every position: the model's own mask hides what a window does not."""
    return tuple(each.layer for each in shapes)


@dataclass
class OwnPass:
    """A pass that JAX traces, of a model that attends by itself."""

    views: Views
    shapes: Sequence[KeptShapes]
    start: jax.Array  # [row] int32
    count: jax.Array  # [row] int32
    positions: jax.Array  # [row, token] int32
    cache: KVCache
    most: int  # positions of a context: tables may have room for more
    pages: dict[int, LayerKV] = field(default_factory=dict)

    @property
    def before(self) -> int:
        return self.slots - self.positions.shape[1]

    @property
    def slots(self) -> int:
        page = next(layer.keys.shape[2] for layer in self.cache.layers if layer is not None)
        return min(self.most, int(self.cache.whole.shape[1] * page))

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        pages, shapes = self.cache.layers[layer], self.shapes[layer]
        if pages is None:
            raise ValueError(f"layer {layer} has no cache")
        new = shapes.packed(*self.views.to_jax((keys, values)))
        written = self.pages[layer] = kv_cache.write(pages, self.cache.whole, *new, self.start, self.count)
        *found, at = kv_cache.gather(written, self.cache.whole, self.start + self.count)
        # Empty slots may hold anything, and a share of zero times NaN is NaN.
        there = (at >= 0)[:, None, : self.slots, None]
        known = (jnp.where(there, written.turned(each[:, :, : self.slots]), 0) for each in found)
        dtype = self.views.to_jax(keys).dtype
        whole: tuple[Any, Any] = self.views.to_torch(tuple(each.astype(dtype) for each in shapes.unpacked(*known)))
        return whole

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        """Return 0 where a query sees a key, and the least number elsewhere: ``[row, 1, token, slot]``."""
        torch = self.views.torch
        at, slots = self.positions[:, None, :, None], jnp.arange(self.slots, dtype=jnp.int32)[None, None, None, :]
        visible = self.views.to_jax(MaskRule(function).visible(torch, *self.views.to_torch((at, slots))))
        visible = visible & (slots <= at)
        least = float(torch.finfo(dtype).min)
        return self.views.to_torch(jnp.where(visible, 0.0, least)).to(dtype)

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        del queries, keys, values, asked
        raise _not_own()

    def complete(self) -> KVCache:
        """Return the cache with the chunk added."""
        layers = enumerate(self.cache.layers)
        return self.cache.with_layers(tuple(self.pages.get(number, layer) for number, layer in layers))


def _not_own() -> UnsupportedModelError:
    return UnsupportedModelError("its code calls another attention than its own.")
