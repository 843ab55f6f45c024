"""A transformers model as the engine's ``Architecture``: its own code, traced through torchax."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Division, Section
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.mesh.tensor_parallel import DividedAxis, divided
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.meta_module import MetaModule, meta_module
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode
from langchain_gemma_jax.models.torchax.traced_pass import TracedPass, now

_INTEGERS = {"int64": "int32", "float64": "float32"}  # as JAX has them


@dataclass(frozen=True)
class TorchFacts:
    """What is known of a transformers model before its weights are read: plain values, which name its programs."""

    config: str  # its configuration, as JSON
    dtype: str  # of its matrices
    specs: tuple[tuple[str, tuple[int, ...], str], ...]  # name, shape and dtype of every parameter and buffer
    layout: CacheLayout
    vocab_size: int
    width: int
    heads: int
    max_context: int
    eos_ids: tuple[int, ...]
    libraries: tuple[str, ...]  # with their releases: another one may compute otherwise
    cuts: tuple[DividedAxis, ...] = ()  # how what is divided among several devices is
    code: RemoteCode | None = None  # of its own


@dataclass(frozen=True)
class TorchModel(Architecture):
    """A causal language model of transformers, of certain sizes."""

    facts: TorchFacts

    @property
    def vocab_size(self) -> int:
        return self.facts.vocab_size

    @property
    def width(self) -> int:
        return self.facts.width

    @property
    def max_context(self) -> int:
        return self.facts.max_context

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.facts.eos_ids

    @property
    def cache_layout(self) -> CacheLayout:
        return self.facts.layout

    def abstract(self, recipe: Recipe) -> Any:  # noqa: ARG002  they are as the model's code has them
        cuts = {cut.name: cut for cut in self.facts.cuts}
        return {
            name: divided(ArraySpec(shape, _INTEGERS.get(dtype, dtype)), cuts.get(name))
            for name, shape, dtype in self.facts.specs
        }

    def among(self, division: Division) -> Architecture:
        return DividedTorchModel(self.facts, division)

    def forward(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,
        start: jax.Array,
        count: jax.Array,
        caches: tuple[KVCache, ...],
        keep: jax.Array | None,
    ) -> tuple[jax.Array, tuple[KVCache, ...]]:
        meta = self._meta()
        going_on = TracedPass(
            meta.libraries, recipe, self.facts.layout, start, count, tokens.shape[1], [list(cache) for cache in caches]
        )
        token = now.set(going_on)
        try:
            with meta.libraries.tracing():
                views = meta.libraries.to_torch((dict(params), tokens, going_on.positions))
                hidden = meta.libraries.to_jax(meta.states(*views))
        finally:
            now.reset(token)
        hidden = hidden.astype(jnp.float32)
        if keep is not None:
            hidden = jnp.take_along_axis(hidden, keep[:, None, None], axis=1)
        return hidden, going_on.written()

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array) -> jax.Array:  # noqa: ARG002  the model's own head
        meta = self._meta()
        rows = hidden.reshape(-1, 1, hidden.shape[-1]).astype(self.facts.dtype)
        with meta.libraries.tracing():
            views = meta.libraries.to_torch((dict(params), rows, jnp.zeros(rows.shape[:2], jnp.int32)))
            scores: jax.Array = meta.libraries.to_jax(meta.scores(*views))
        return scores.astype(jnp.float32).reshape(*hidden.shape[:-1], self.facts.vocab_size)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        widest = max((shape[0] for _, shape, _ in self.facts.specs if len(shape) == 2), default=self.facts.width)
        widest = min(widest, 16 * self.facts.width)  # the head's rows are not at work here
        return tokens * (2 * widest + 2 * self.facts.width + self.facts.heads * context)

    def _meta(self) -> MetaModule:
        return meta_module(self.facts.config, self.facts.dtype, self.facts.code)


@dataclass(frozen=True)
class DividedTorchModel(TorchModel):
    """A causal language model of transformers on several devices. XLA divides the work by where the arrays lie."""

    division: Division

    @property
    def cache_of_a_device(self) -> CacheLayout:
        def of(layer: CacheLayer | None) -> CacheLayer | None:
            if layer is None:
                return None
            ways = self.division.ways(Section("key-value heads", layer.kv_heads))
            return replace(layer, kv_heads=layer.kv_heads // ways)

        return tuple(of(layer) for layer in self.cache_layout)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        ways = self.division.ways(Section("query heads", self.facts.heads))
        return -(-super().numbers_at_work(tokens, context) // ways)
