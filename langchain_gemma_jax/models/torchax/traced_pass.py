"""One forward pass of a transformers model: the cache that it writes to, and the attention that it calls.

The model's own code projects queries, keys and values. What it does with them is ours: ``update`` takes the keys and
values of a chunk where transformers has a cache, ``attention`` mixes them where transformers has an attention. Both
find the pass that is going on in ``now``. The arrays are those of ``gemma.kv_cache``, so rings, rows that lie apart
and kernels are the same as for a Gemma.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.model_config import (
    CacheLayer,
    CacheLayout,
    LayerConfig,
    ModelConfig,
    Rope,
)
from langchain_gemma_jax.models.gemma.attention import VisibleKV, attend_all, is_by_kernel, remember
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.seams.recipe import Recipe

# What attention is told beside queries, keys and values, and what changes no result of ours. Anything else that is
# given has a meaning that is not known here.
_KNOWN = {"scaling", "softcap", "sliding_window", "dropout", "is_causal", "position_ids", "use_cache"}
_NO_EFFECT = {"output_attentions", "output_hidden_states", "return_dict", "logits_to_keep", "cache_position", "kwargs"}


_OF_MASKS = {"get_mask_sizes", "get_max_cache_shape", "get_max_length", "get_usable_length"}


class Views(Protocol):
    """How tensors and the arrays that they stand for become each other. Nothing is copied."""

    def to_jax(self, tree: Any) -> Any: ...

    def to_torch(self, tree: Any) -> Any: ...


class Pass(Protocol):
    """What goes on while a model is called."""

    def update(self, keys: Any, values: Any, layer: int) -> None:
        """Take the keys and values ``[row, kv_head, token, head_dim]`` of a layer."""
        ...

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        """Return ``[row, token, head, head_dim]`` for queries ``[row, head, token, head_dim]``."""
        ...


now: ContextVar[Pass] = ContextVar("now")
"""The pass that is going on in this thread."""


@dataclass(frozen=True)
class AttentionAsked:
    """How a layer wants its values mixed."""

    scaling: float
    softcap: float | None
    window: int | None


class StrangeCacheError(UnsupportedModelError, AttributeError):
    """A model asks its cache for what a cache of keys and values does not have; also how ``hasattr`` finds that out."""


class PassCache:
    """What a model takes for a cache of transformers'."""

    is_compileable = True

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Hand a layer's keys and values to the pass. What the layer may look at is known there."""
        now.get().update(keys, values, layer)
        return keys, values

    def __getattr__(self, name: str) -> Any:
        """Say that there is no more than keys and values."""
        if name in _OF_MASKS:
            why = "to make a mask of its own, and here an attention is told by positions alone what it sees"
        else:
            why = (
                "which is no part of keys and values: a layer keeps something else, such as the state of a convolution "
                "or of a recurrence, and its size is not known here"
            )
        raise StrangeCacheError(f"its code asks its cache for {name!r}, {why}.")

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        """Return 0: where tokens stand is told by their position ids."""
        return 0


def attention(module: Any, queries: Any, keys: Any, values: Any, mask: Any = None, **asked: Any) -> tuple[Any, None]:
    """Mix values, in the place of an attention of transformers'. Which are seen is known without a mask."""
    del keys, values, mask  # the pass has them, with those from before
    layer = getattr(module, "layer_idx", None)
    unknown = [name for name, value in asked.items() if value is not None and name not in _KNOWN | _NO_EFFECT]
    if not isinstance(layer, int) or unknown or asked.get("is_causal") is False:
        what = f"{', '.join(unknown)} to be heeded" if unknown else "what is no layer of a decoder to be mixed"
        raise UnsupportedModelError(f"{type(module).__name__}: its attention asks for {what}, which is not known here.")
    scaling = asked.get("scaling")
    if scaling is None:
        scaling = queries.shape[-1] ** -0.5
    window = asked.get("sliding_window")
    return now.get().attend(queries, layer, AttentionAsked(float(scaling), asked.get("softcap"), window)), None


class NoPass:
    """The pass that goes on while a model's head is called alone: its body is to stay out of it."""

    def update(self, keys: Any, values: Any, layer: int) -> None:
        del keys, values
        raise _called_by_the_head(layer)

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        del queries, asked
        raise _called_by_the_head(layer)


def _called_by_the_head(layer: int) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"its head calls layer {layer} by itself, and not by the body that it stands on. They cannot be run apart."
    )


@dataclass
class LayoutPass:
    """A pass without numbers, which notes what each layer keeps and asks for."""

    torch: Any
    kept: dict[int, CacheLayer] = field(default_factory=dict)
    asked: dict[int, AttentionAsked] = field(default_factory=dict)
    heads: int = 0

    def update(self, keys: Any, values: Any, layer: int) -> None:
        if keys.shape != values.shape:
            raise UnsupportedModelError(
                f"Layer {layer} has keys of {tuple(keys.shape)} and values of {tuple(values.shape)}: two shapes."
            )
        if layer in self.kept:
            raise UnsupportedModelError(f"Layer {layer} writes to its cache twice in a pass; expected once.")
        self.kept[layer] = CacheLayer(int(keys.shape[1]), int(keys.shape[3]))

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        if layer not in self.kept:
            raise UnsupportedModelError(f"Layer {layer} looks at keys and values that it did not write to its cache.")
        known = self.kept[layer]
        self.kept[layer] = CacheLayer(known.kv_heads, known.head_dim, asked.window)
        self.asked[layer], self.heads = asked, max(self.heads, int(queries.shape[1]))
        return self.torch.empty_like(queries.transpose(1, 2))

    def layout(self, layers: int) -> CacheLayout:
        """Return what each layer keeps.

        Raises:
            UnsupportedModelError: a layer keeps nothing that was seen.
        """
        silent = [layer for layer in range(layers) if layer not in self.asked]
        if silent or len(self.asked) != layers:
            raise UnsupportedModelError(
                f"Expected {layers} layers that write keys and values and attend to them, found that "
                f"{', '.join(map(str, silent[:8])) or 'others'} did not: they keep something else (the state of a "
                "recurrent layer, say), and its size is not known here."
            )
        return tuple(self.kept[layer] for layer in range(layers))


@dataclass
class TracedPass:
    """A pass that is traced by JAX: a chunk, over caches that each hold their share of the rows."""

    views: Views
    recipe: Recipe
    layout: CacheLayout
    start: jax.Array  # [row] int32
    count: jax.Array  # [row] int32
    tokens: int
    caches: list[list[LayerKV | None]]
    seen: dict[int, list[VisibleKV]] = field(default_factory=dict)

    @property
    def positions(self) -> jax.Array:
        """The chunk's positions ``[row, token]``."""
        return self.start[:, None] + jnp.arange(self.tokens, dtype=jnp.int32)[None, :]

    def update(self, keys: Any, values: Any, layer: int) -> None:
        """Write the chunk. See ``gemma.attention.remember``."""
        new_keys, new_values = self.views.to_jax((keys, values))
        shape, parts = _layer(self.layout, layer), len(self.caches)
        by_kernel = is_by_kernel(self.tokens, shape, jnp.dtype(self.recipe.kv_dtype), self.recipe)
        in_loop = self.recipe.write_in_loop and not by_kernel
        shares = (jnp.split(each, parts) for each in (new_keys, new_values, self.start, self.count))
        self.seen[layer] = []
        for cache, (k, v, start, count) in zip(self.caches, zip(*shares, strict=True), strict=True):
            old = cache[layer]
            if old is None:
                raise ValueError(f"layer {layer} has no cache")
            cache[layer], visible = remember(shape, old, k, v, start, count, in_loop=in_loop)
            self.seen[layer].append(visible)

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        """Look at what was written. See ``gemma.attention.attend_all``."""
        asking: jax.Array = self.views.to_jax(queries)
        rows, heads, tokens, head_dim = asking.shape
        turned = asking.swapaxes(1, 2).astype(jnp.float32) * asked.scaling
        facts = _facts(heads, asked.softcap)
        mixed = attend_all(turned, self.positions, self.seen[layer], facts, _layer(self.layout, layer), self.recipe)
        return self.views.to_torch(mixed.reshape(rows, tokens, heads, head_dim).astype(asking.dtype))

    def written(self) -> tuple[KVCache, ...]:
        """Return the caches with the chunk in them."""
        return tuple(tuple(cache) for cache in self.caches)


def _layer(layout: Sequence[CacheLayer | None], layer: int) -> LayerConfig:
    kept = layout[layer]
    if kept is None:
        raise ValueError(f"layer {layer} keeps nothing")
    return LayerConfig(kept.kv_heads, kept.head_dim, 0, Rope(1.0), kept.window)


def _facts(heads: int, softcap: float | None) -> ModelConfig:
    """Return the facts of a model that attention looks at, in the form in which it takes them."""
    return ModelConfig("", 0, 0, heads, (), 0, 1.0, attention_softcap=softcap)
