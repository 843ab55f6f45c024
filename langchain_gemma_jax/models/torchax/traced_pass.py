"""One forward pass of a transformers model: the cache that it writes to, and the attention that it calls.

The model's own code projects queries, keys and values. Cache and attention are ours: ``update`` takes the keys and
values of a chunk in the place of transformers' cache, and ``attention`` replaces transformers' attention. Both find the
current pass in ``now``. The pages are those of ``seams.kv_cache``, and kernels attend as for a Gemma.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.kernels.attention import Places
from langchain_gemma_jax.models.configuration.model_config import (
    CacheLayer,
    CacheLayout,
    LayerConfig,
    ModelConfig,
    Rope,
)
from langchain_gemma_jax.models.gemma.attention import attend_in_pages
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.seams.recipe import Recipe

# Arguments of attention other than queries, keys and values that are supported, and those that change no result here.
# Any other argument is refused, because its meaning is not known.
_KNOWN = {"scaling", "softcap", "sliding_window", "dropout", "is_causal", "position_ids", "use_cache"}
_NO_EFFECT = {"output_attentions", "output_hidden_states", "return_dict", "logits_to_keep", "cache_position", "kwargs"}


_OF_MASKS = {"get_mask_sizes", "get_max_cache_shape", "get_max_length", "get_usable_length"}


class Views(Protocol):
    """Conversion between tensors and arrays, without a copy."""

    def to_jax(self, tree: Any) -> Any: ...

    def to_torch(self, tree: Any) -> Any: ...


class Pass(Protocol):
    """The cache and the attention of one call of a model."""

    def update(self, keys: Any, values: Any, layer: int) -> None:
        """Take the keys and values ``[row, kv_head, token, head_dim]`` of a layer."""
        ...

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        """Return ``[row, token, head, head_dim]`` for queries ``[row, head, token, head_dim]``."""
        ...


now: ContextVar[Pass] = ContextVar("now")
"""The current pass of this thread."""


@dataclass(frozen=True)
class AttentionAsked:
    """The settings of a layer's attention."""

    scaling: float
    softcap: float | None
    window: int | None


class StrangeCacheError(UnsupportedModelError, AttributeError):
    """A model's code uses an attribute that a cache of keys and values lacks. An ``AttributeError`` for ``hasattr``."""


class PassCache:
    """The cache object for transformers' code, which passes everything to the pass in ``now``."""

    is_compileable = True

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Pass a layer's keys and values to the current pass, which also has those from before."""
        now.get().update(keys, values, layer)
        return keys, values

    def __getattr__(self, name: str) -> Any:
        """Refuse all other attributes: there are only keys and values."""
        if name in _OF_MASKS:
            why = "to make a mask of its own, and here an attention is told by positions alone what it sees"
        else:
            why = (
                "which is no part of keys and values: a layer keeps something else, such as the state of a convolution "
                "or of a recurrence, and its size is not known here"
            )
        raise StrangeCacheError(f"its code asks its cache for {name!r}, {why}.")

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        """Return 0: positions are given by position ids."""
        return 0


def attention(module: Any, queries: Any, keys: Any, values: Any, mask: Any = None, **asked: Any) -> tuple[Any, None]:
    """Attend, in the place of transformers' attention. The mask is not needed."""
    del keys, values, mask  # the pass has the keys and values, with those from before
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
    """The pass while a model's head is called alone: the layers of its body must not be called."""

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
    """A pass without numbers, which records each layer's cache and settings of attention."""

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
        """Return the cache of each layer.

        Raises:
            UnsupportedModelError: a layer did not write keys and values, or did not attend.
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
    """A pass that JAX traces: a chunk, over pages of keys and values."""

    views: Views
    recipe: Recipe
    layout: CacheLayout
    start: jax.Array  # [row] int32
    count: jax.Array  # [row] int32
    tokens: int
    cache: KVCache
    new: dict[int, tuple[jax.Array, jax.Array]] = field(default_factory=dict)  # by layer, until it attends
    pages: dict[int, LayerKV] = field(default_factory=dict)  # by layer, with the chunk added

    @property
    def positions(self) -> jax.Array:
        """The chunk's positions ``[row, token]``."""
        return self.start[:, None] + jnp.arange(self.tokens, dtype=jnp.int32)[None, :]

    def update(self, keys: Any, values: Any, layer: int) -> None:
        """Take a layer's new keys and values. They are written when it attends."""
        self.new[layer] = self.views.to_jax((keys, values))

    def attend(self, queries: Any, layer: int, asked: AttentionAsked) -> Any:
        """Attend to the written keys and values. See ``gemma.attention.attend_in_pages``."""
        asking: jax.Array = self.views.to_jax(queries)
        rows, heads, tokens, head_dim = asking.shape
        turned = asking.swapaxes(1, 2).astype(jnp.float32) * asked.scaling
        facts, shape = _facts(heads, asked.softcap), _layer(self.layout, layer)
        places = Places(self.start, self.count, jnp.zeros_like(self.start))
        pages = self.pages.get(layer, self.cache.layers[layer])
        if pages is None:
            raise ValueError(f"layer {layer} has no cache")
        mixed, self.pages[layer] = attend_in_pages(
            turned, places, self.cache.table(shape), pages, self.new.pop(layer, None), facts, shape, self.recipe
        )
        return self.views.to_torch(mixed.reshape(rows, tokens, heads, head_dim).astype(asking.dtype))

    def written(self) -> KVCache:
        """Return the cache with the chunk added."""
        layers = enumerate(self.cache.layers)
        return self.cache.with_layers(tuple(self.pages.get(number, layer) for number, layer in layers))


def _layer(layout: Sequence[CacheLayer | None], layer: int) -> LayerConfig:
    kept = layout[layer]
    if kept is None:
        raise ValueError(f"layer {layer} keeps nothing")
    return LayerConfig(kept.kv_heads, kept.head_dim, 0, Rope(1.0), kept.window)


def _facts(heads: int, softcap: float | None) -> ModelConfig:
    """Return a ``ModelConfig`` with the fields that attention uses."""
    return ModelConfig("", 0, 0, heads, (), 0, 1.0, attention_softcap=softcap)
