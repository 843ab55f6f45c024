"""One forward pass of a transformers model: the cache that it writes to, and the attention that it calls.

The model's own code projects queries, keys and values. Cache and attention are ours: ``update`` takes the keys and
values of a chunk in the place of transformers' cache, and ``attention`` replaces transformers' attention. Both find the
current pass in ``now``. The pages are those of ``seams.kv_cache``, and kernels attend as for a Gemma.

Rows lie end to end, as one sequence with the position of each token: then "the number of tokens so far", which some
models add to a token's place in the chunk, can be right for every row. ``own_attention.py`` has the pass of models
whose attention cannot be replaced.
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
from langchain_gemma_jax.models.gemma.attention import VisibleKV, attend_in_pages
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.masks import MaskFunction, MaskRule
from langchain_gemma_jax.models.torchax.plain_attention import attend_plainly

# Arguments of attention other than queries, keys and values that are supported, and those that change no result here.
# Any other argument is refused, because its meaning is not known.
_KNOWN = {"scaling", "softcap", "sliding_window", "dropout", "is_causal", "position_ids", "use_cache", "s_aux"}
_NO_EFFECT = {"output_attentions", "output_hidden_states", "return_dict", "logits_to_keep", "cache_position", "kwargs"}


class Views(Protocol):
    """Conversion between tensors and arrays, without a copy."""

    @property
    def torch(self) -> Any: ...

    def to_jax(self, tree: Any) -> Any: ...

    def to_torch(self, tree: Any) -> Any: ...


class Pass(Protocol):
    """The cache and the attention of one call of a model."""

    @property
    def before(self) -> Any:
        """The answer to a model that asks how many tokens its cache has: what it adds to places in the chunk."""
        ...

    @property
    def slots(self) -> int:
        """The number of keys that attention sees, empty ones included."""
        ...

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        """Take the keys and values ``[row, kv_head, token, head_dim]`` of a layer; return those to attend to."""
        ...

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        """Return the mask of a rule, for a model that attends by itself."""
        ...

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        """Return ``[row, token, head, head_dim]`` for queries ``[row, head, token, head_dim]``."""
        ...


now: ContextVar[Pass] = ContextVar("now")
"""The current pass of this thread."""


@dataclass(frozen=True)
class AttentionAsked:
    """The settings of one attention."""

    scaling: float
    softcap: float | None
    window: int | None  # as an argument of the attention. What a mask says is in ``rule``
    rule: MaskRule | None = None
    sinks: Any = None


@dataclass(frozen=True)
class AttentionKind:
    """The part of an attention's settings that is known before there are numbers."""

    layer: int  # whose keys and values it looks at
    ruled: bool  # its mask is neither causal nor a window
    sinks: bool


class StrangeCacheError(UnsupportedModelError, AttributeError):
    """A model's code uses an attribute that a cache of keys and values lacks. An ``AttributeError`` for ``hasattr``."""


class PassCache:
    """The cache object for transformers' code, which passes everything to the pass in ``now``."""

    is_compileable = True

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Pass a layer's keys and values to the current pass; return those that the layer attends to."""
        return now.get().update(keys, values, layer)

    def get_seq_length(self, *_: Any, **__: Any) -> Any:
        """Return what a model adds to a token's place in the chunk."""
        return now.get().before

    def get_query_offset(self, *_: Any, **__: Any) -> int:
        """Return 0: masks are made of rules, for positions that the pass knows."""
        return 0

    def get_mask_sizes(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Return the number of keys that attention sees, and the first one's place."""
        return now.get().slots, 0

    def __getattr__(self, name: str) -> Any:
        """Refuse all other attributes: there are only keys and values."""
        raise StrangeCacheError(
            f"its code asks its cache for {name!r}, which is no part of keys and values: a layer keeps something else, "
            "such as the state of a convolution or of a recurrence."
        )


def attention(module: Any, queries: Any, keys: Any, values: Any, mask: Any = None, **asked: Any) -> tuple[Any, None]:
    """Attend, in the place of transformers' attention."""
    name = type(module).__name__
    unknown = [name for name, value in asked.items() if value is not None and name not in _KNOWN | _NO_EFFECT]
    if unknown:
        raise UnsupportedModelError(f"{name}: its attention asks for {', '.join(unknown)}, which is not known here.")
    if mask is None and asked.get("is_causal", getattr(module, "is_causal", None)) is False:
        raise UnsupportedModelError(f"{name}: its attention looks ahead, and here a text is read from left to right.")
    if not (mask is None or isinstance(mask, MaskRule)):
        raise UnsupportedModelError(f"{name}: its attention has a mask that transformers' helpers did not make.")
    scaling = asked.get("scaling")
    if scaling is None:
        scaling = queries.shape[-1] ** -0.5
    how = AttentionAsked(float(scaling), asked.get("softcap"), asked.get("sliding_window"), mask, asked.get("s_aux"))
    return now.get().attend(queries, keys, values, how), None


def mask_of_the_pass(usual: Any) -> Any:
    """Return a function that makes masks for transformers, as the current pass has them.

    ``usual``: transformers' own, for all who use transformers outside of a pass.
    """

    def mask(*args: Any, **options: Any) -> Any:
        current = now.get(None)
        if current is None:
            return usual(*args, **options)
        if options.get("use_vmap"):
            raise UnsupportedModelError("its attention adds a mask of its own to the causal one.")
        return current.mask(options["mask_function"], options["dtype"])

    return mask


class NoPass:
    """The pass while a model's head is called alone: the layers of its body must not be called."""

    slots = 0

    @property
    def before(self) -> int:
        raise _called_by_the_head()

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        del keys, values, layer
        raise _called_by_the_head()

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        del function, dtype
        raise _called_by_the_head()

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        del queries, keys, values, asked
        raise _called_by_the_head()


def _called_by_the_head() -> UnsupportedModelError:
    return UnsupportedModelError(
        "its head calls layers by itself, and not by the body that it stands on. They cannot be run apart."
    )


class WrittenBy:
    """The layer whose keys an attention is given: known by the tensor itself, also where layers share keys."""

    def __init__(self) -> None:
        self._keys: list[tuple[Any, int]] = []  # with the tensors, so that no other gets an identity of theirs

    def note(self, keys: Any, layer: int) -> None:
        """Note the keys that a layer wrote."""
        self._keys.append((keys, layer))

    def of(self, keys: Any) -> int:
        """Return the layer that wrote keys.

        Raises:
            UnsupportedModelError: none did.
        """
        for known, layer in self._keys:
            if known is keys:
                return layer
        raise UnsupportedModelError(
            "its attention looks at keys that are not those in its cache: it makes them of what the cache keeps, or "
            "keeps nothing there."
        )


@dataclass
class LayoutPass:
    """A pass without numbers, which records each layer's cache and settings of attention."""

    torch: Any
    most: int  # positions of a context
    kept: dict[int, CacheLayer] = field(default_factory=dict)
    asked: list[tuple[int, int | None, AttentionKind]] = field(default_factory=list)  # layer, window, kind
    heads: int = 0
    slots: int = 0
    written: WrittenBy = field(default_factory=WrittenBy)

    @property
    def before(self) -> Any:
        return self.torch.zeros(self.slots, dtype=self.torch.long)

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        if keys.shape != values.shape:
            raise UnsupportedModelError(
                f"Layer {layer} has keys of {tuple(keys.shape)} and values of {tuple(values.shape)}: two shapes."
            )
        if layer in self.kept:
            raise UnsupportedModelError(f"Layer {layer} writes to its cache twice in a pass; expected once.")
        self.kept[layer] = CacheLayer(int(keys.shape[1]), int(keys.shape[3]))
        self.written.note(keys, layer)
        return keys, values

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        del dtype
        return MaskRule(function)

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        del values
        layer, ruled = self.written.of(keys), False
        window = asked.window
        if asked.rule is not None:
            try:
                window = asked.rule.window(self.torch, self.most)
            except ValueError:
                window, ruled = None, True
        self.asked.append((layer, window, AttentionKind(layer, ruled, asked.sinks is not None)))
        self.heads = max(self.heads, int(queries.shape[1]))
        return self.torch.empty_like(queries.transpose(1, 2))

    def layout(self, layers: int) -> CacheLayout:
        """Return the cache of each layer; None for a layer that looks at another's.

        Raises:
            UnsupportedModelError: a layer keeps something else.
        """
        if len(self.asked) != layers or not self.kept or max(self.kept) >= layers:
            raise UnsupportedModelError(
                f"{layers} layers attend {len(self.asked)} times to keys and values in a cache, expected once each: "
                "its layers keep something else, such as the state of a convolution or of a recurrence."
            )
        return tuple(self._layer(layer) for layer in range(layers))

    def kinds(self) -> tuple[AttentionKind, ...]:
        """Return each attention's settings, in the order in which they are called."""
        return tuple(kind for _, _, kind in self.asked)

    def _layer(self, layer: int) -> CacheLayer | None:
        if layer not in self.kept:
            return None
        windows = {window for looked_at, window, _ in self.asked if looked_at == layer}
        if len(windows) > 1:
            raise UnsupportedModelError(f"The keys of layer {layer} are seen through windows of several lengths.")
        known = self.kept[layer]
        return CacheLayer(known.kv_heads, known.head_dim, next(iter(windows), None))


@dataclass
class TracedPass:
    """A pass that JAX traces: a chunk, over pages of keys and values."""

    views: Views
    recipe: Recipe
    layout: CacheLayout
    kinds: Sequence[AttentionKind]
    start: jax.Array  # [row] int32
    count: jax.Array  # [row] int32
    positions: jax.Array  # [row, token] int32
    cache: KVCache
    new: dict[int, tuple[jax.Array, jax.Array]] = field(default_factory=dict)  # by layer, until it attends
    pages: dict[int, LayerKV] = field(default_factory=dict)  # by layer, with the chunk added
    written: WrittenBy = field(default_factory=WrittenBy)
    attended: int = 0

    @property
    def before(self) -> Any:
        at = self.positions.reshape(-1)
        return self.views.to_torch(at - jnp.arange(at.size, dtype=jnp.int32))

    @property
    def slots(self) -> int:
        return int(self.positions.size)

    def update(self, keys: Any, values: Any, layer: int) -> tuple[Any, Any]:
        """Take a layer's new keys and values. They are written when it attends."""
        self.new[layer] = (self._by_row(keys), self._by_row(values))
        self.written.note(keys, layer)
        return keys, values

    def mask(self, function: MaskFunction, dtype: Any) -> Any:
        del dtype
        return MaskRule(function)

    def attend(self, queries: Any, keys: Any, values: Any, asked: AttentionAsked) -> Any:
        """Attend to the written keys and values. See ``gemma.attention.attend_in_pages``."""
        del values
        layer, kind = self.written.of(keys), self.kinds[self.attended]
        self.attended += 1
        asking = self._by_row(queries).swapaxes(1, 2)  # [row, token, head, head_dim]
        turned = asking.astype(jnp.float32) * asked.scaling
        pages = self.pages.get(layer, self.cache.layers[layer])
        if pages is None:
            raise ValueError(f"layer {layer} has no cache")
        new, shape = self.new.pop(layer, None), _layer(self.layout, layer)
        if kind.ruled or kind.sinks:
            mixed, self.pages[layer] = self._plainly(turned, pages, new, shape, asked, ruled=kind.ruled)
        else:
            places = Places(self.start, self.count, jnp.zeros_like(self.start))
            facts = _facts(turned.shape[2], asked.softcap)
            mixed, self.pages[layer] = attend_in_pages(
                turned, places, self.cache.table(shape), pages, new, facts, shape, self.recipe
            )
        return self.views.to_torch(mixed.reshape(1, -1, *asking.shape[2:]).astype(asking.dtype))

    def complete(self) -> KVCache:
        """Return the cache with the chunk added."""
        layers = enumerate(self.cache.layers)
        return self.cache.with_layers(tuple(self.pages.get(number, layer) for number, layer in layers))

    def _by_row(self, tensor: Any) -> jax.Array:
        """Return ``[row, head, token, head_dim]`` for ``[1, head, tokens of all rows, head_dim]``."""
        array: jax.Array = self.views.to_jax(tensor)
        _, heads, _, head_dim = array.shape
        return array.reshape(heads, *self.positions.shape, head_dim).swapaxes(0, 1)

    def _plainly(
        self,
        queries: jax.Array,
        pages: LayerKV,
        new: tuple[jax.Array, jax.Array] | None,
        shape: LayerConfig,
        asked: AttentionAsked,
        *,
        ruled: bool,
    ) -> tuple[jax.Array, LayerKV]:
        table = self.cache.table(shape)
        if new is not None:
            pages = kv_cache.write(pages, table, *new, self.start, self.count)
        seen = VisibleKV(*kv_cache.gather(pages, table, self.start + self.count, self.recipe.kv_dtype))
        keys, at = seen.positions[:, None, :], self.positions[:, :, None]
        visible = (keys >= 0) & (keys <= at)
        if shape.window is not None:
            visible &= keys > at - shape.window
        if ruled and asked.rule is not None:
            by_rule = asked.rule.visible(self.views.torch, *self.views.to_torch((at, keys)))
            visible &= self.views.to_jax(by_rule)
        sinks = None if asked.sinks is None else self.views.to_jax(asked.sinks)
        mixed = attend_plainly(pages.turned(queries), seen, visible, asked.softcap, sinks)
        return pages.turned(mixed.reshape(queries.shape)), pages


def _layer(layout: Sequence[CacheLayer | None], layer: int) -> LayerConfig:
    kept = layout[layer]
    if kept is None:
        raise ValueError(f"layer {layer} keeps nothing")
    return LayerConfig(kept.kv_heads, kept.head_dim, 0, Rope(1.0), kept.window)


def _facts(heads: int, softcap: float | None) -> ModelConfig:
    """Return a ``ModelConfig`` with the fields that attention uses."""
    return ModelConfig("", 0, 0, heads, (), 0, 1.0, attention_softcap=softcap)
