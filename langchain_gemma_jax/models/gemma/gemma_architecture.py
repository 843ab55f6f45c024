"""Gemma as the engine's ``Architecture``: every generation, by its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.configuration.model_config import CacheLayout, ModelConfig
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward_apart, logits
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder


@dataclass(frozen=True)
class GemmaFacts(Architecture):
    """A Gemma's facts, as its configuration has them, wherever it is computed."""

    config: ModelConfig

    @property
    def vocab_size(self) -> int:
        return self.config.vocab_size

    @property
    def width(self) -> int:
        return self.config.width

    @property
    def max_context(self) -> int:
        return self.config.max_context

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.config.eos_ids

    @property
    def cache_layout(self) -> CacheLayout:
        return self.config.cache_layout

    @property
    def embedding_width(self) -> int | None:
        embedding = self.config.embedding
        return None if embedding is None else embedding.width(self.config.width)

    def abstract(self, recipe: Recipe) -> Any:
        return recipe.abstract(self.config)


@dataclass(frozen=True)
class Gemma(GemmaFacts):
    """A Gemma of any generation."""

    encoders: tuple[MediaEncoder, ...] = ()

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
        return forward_apart(params, self.config, recipe, tokens, start, count, caches, keep)

    def read_medium(
        self,
        params: Any,
        recipe: Recipe,
        encoder: int,
        vectors: jax.Array,
        start: jax.Array,
        count: jax.Array,
        cache: KVCache,
        keep: jax.Array,
    ) -> tuple[jax.Array, KVCache]:
        medium, padding = (
            SoftChunk(vectors, self.encoders[encoder].sight),
            jnp.full(vectors.shape[:2], self.config.pad_id),
        )
        hidden, (cache,) = forward_apart(
            params, self.config, recipe, padding, start, count, (cache,), keep, medium=medium
        )
        return hidden, cache

    def embed(self, params: Any, recipe: Recipe, tokens: jax.Array, count: jax.Array) -> jax.Array:
        return text_vectors(params, self.config, recipe, tokens, count)

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array) -> jax.Array:
        return logits(params, self.config, recipe, hidden)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        config = self.config
        widest = max(2 * layer.ffw_width + config.heads * layer.head_dim for layer in config.layers)
        return tokens * (widest + 2 * config.width + config.heads * context)
