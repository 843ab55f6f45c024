"""The fastest ways to multiply by a weight and to attend: as plain values that a jitted program closes over."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from langchain_gemma_jax.models.configuration.abstract import Layout, abstract
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.weights import DENSE, PLAIN, Plan, Storage, stored


class AttentionForm(StrEnum):
    """One way to compute attention. All give the same numbers up to rounding."""

    PRODUCTS = "products"  # over the whole cache, and what is not there is masked
    KERNEL = "kernel"  # by the package's own code, over what is there; products where that does not run


class BetweenForm(StrEnum):
    """One way to compute what lies between products: norms, residuals, the turn of heads, gates."""

    XLA = "xla"
    KERNEL = "kernel"  # by the package's own code, a few calls a layer; as XLA does where that does not run


@dataclass(frozen=True)
class Attention:
    """The ways for chunks of few tokens, as in a step or when drafts are checked, and of many, as in a prompt."""

    few: AttentionForm = AttentionForm.PRODUCTS
    many: AttentionForm = AttentionForm.PRODUCTS

    FEW_TOKENS = 16

    def form(self, tokens: int) -> AttentionForm:
        """Return the way for a chunk of so many tokens."""
        return self.few if tokens <= self.FEW_TOKENS else self.many


@dataclass(frozen=True)
class Recipe:
    """How a model's matrices are stored and multiplied, and its cache is looked at, in one dtype on one machine.

    Hashable and comparable, so that it can be a static argument of a jitted function. The default
    is safe everywhere: right numbers, nobody's worst case known.
    """

    dtype: str = "bfloat16"  # of dense matrices; products are taken in it
    layers: Plan = PLAIN
    embed: Plan = PLAIN
    attention: Attention = Attention()
    between: BetweenForm = BetweenForm.XLA
    # Attention by products runs one for each (row, key-value head) pair up to this many pairs, and batched products
    # beyond. Batched, XLA:CPU transposes a copy of the keys in each step; a GPU would rather launch once.
    attention_pairs: int = 0
    # Whether the cache is written in a loop of one turn, where products attend. Outside of a loop, XLA:CPU fuses the
    # update with the reshape in which they read the cache, writes all of it anew for that, and copies it twice to keep
    # the old one. In a loop it still goes through all of a cache in 16 bits (measured: 4 ms at 32,784 slots). Where a
    # kernel attends, it is written in place without. On a GPU a loop costs more than that would.
    write_in_loop: bool = False
    storage: Storage = DENSE
    cache_dtype: str | None = None  # of keys and values; None: the one that products are taken in
    source: str = dataclasses.field(default="default", compare=False)  # "probe", "disk", "override", "default"

    @property
    def kv_dtype(self) -> str:
        """The dtype of the key-value cache, however the weights are stored."""
        return self.cache_dtype or self.dtype

    @property
    def layout(self) -> Layout:
        """How ``abstract(config, dtype, layout)`` has to lay out the arrays."""
        return Layout(layer_out_first=self.layers.out_first, embed_out_first=self.embed.out_first)

    def abstract(self, config: ModelConfig) -> Any:
        """The model's parameter tree as this recipe stores it: an ``ArraySpec`` for each array, none of its bytes."""
        return stored(abstract(config, self.dtype, self.layout), self.storage)
