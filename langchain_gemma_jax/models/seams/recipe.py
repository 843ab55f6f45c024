"""The choice of how to multiply by weights and how to attend: plain values that a jitted program closes over."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from langchain_gemma_jax.models.configuration.abstract import Layout, abstract
from langchain_gemma_jax.models.configuration.model_config import CacheLayout, ModelConfig
from langchain_gemma_jax.models.seams.weights import DENSE, PLAIN, Plan, Storage, stored

ROUNDED = "int8"
"""The ``cache_dtype`` with which global layers' keys and values are turned and rounded, see ``kv_rounding``."""


class AttentionForm(StrEnum):
    """One way to compute attention. All give the same numbers up to rounding."""

    PRODUCTS = "products"  # over all pages of a table, gathered, with empty slots masked
    KERNEL = "kernel"  # by the package's own code, over filled slots only; products where that does not run


class BetweenForm(StrEnum):
    """One way to compute the operations between matrix products: norms, residuals, rotation of heads, gates."""

    XLA = "xla"
    KERNEL = "kernel"  # by the package's own code, a few calls a layer; as XLA does where that does not run


@dataclass(frozen=True)
class Recipe:
    """The choice of how to store matrices, multiply by them and attend, for one dtype on one machine.

    Hashable and comparable, so that it can be a static argument of a jitted function. The default
    is correct everywhere, and no machine is known on which it is far slower than another recipe.
    """

    dtype: str = "bfloat16"  # of dense matrices; products are taken in it
    layers: Plan = PLAIN
    embed: Plan = PLAIN
    attention: AttentionForm = AttentionForm.PRODUCTS
    between: BetweenForm = BetweenForm.XLA
    # Attention by products runs one product for each (row, key-value head) pair up to this many pairs, and batched
    # products beyond. Batched, XLA:CPU transposes a copy of the keys in each step; on a GPU one launch is cheaper.
    attention_pairs: int = 0
    storage: Storage = DENSE
    # Of keys and values; None: the one that products are taken in. "int8": those of global layers are rounded.
    cache_dtype: str | None = None
    source: str = dataclasses.field(default="default", compare=False)  # "probe", "disk", "override", "default"

    @property
    def kv_dtype(self) -> str:
        """The dtype of keys and values that are not rounded. It does not depend on how the weights are stored."""
        if self.rounds_cache:
            return "float16" if self.storage.rounds_by_kernel else self.dtype
        return self.cache_dtype or self.dtype

    @property
    def rounds_cache(self) -> bool:
        """True if global layers' keys and values are rounded to eight bits."""
        return self.cache_dtype == ROUNDED

    def kept(self, layout: CacheLayout) -> CacheLayout:
        """Return a model's cache as this recipe stores it."""
        if not self.rounds_cache:
            return layout
        return tuple(
            layer if layer is None or layer.window is not None else replace(layer, rounded=True) for layer in layout
        )

    @property
    def layout(self) -> Layout:
        """The ``layout`` argument of ``abstract(config, dtype, layout)`` for this recipe."""
        return Layout(layer_out_first=self.layers.out_first, embed_out_first=self.embed.out_first)

    def abstract(self, config: ModelConfig) -> Any:
        """Return the model's parameter tree as this recipe stores it, with an ``ArraySpec`` for each array."""
        return stored(abstract(config, self.dtype, self.layout), self.storage)
