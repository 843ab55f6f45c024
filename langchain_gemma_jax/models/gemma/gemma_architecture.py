"""Gemma as the engine's ``Architecture``: every generation, by its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.gemma.divided_gemma import DividedGemma
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward, logits
from langchain_gemma_jax.models.gemma.gemma_facts import GemmaFacts
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder
from langchain_gemma_jax.models.seams.placement import DeviceGrid
from langchain_gemma_jax.models.seams.recipe import Recipe


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
        cache: KVCache,
        keep: jax.Array | None,
    ) -> tuple[jax.Array, KVCache]:
        hidden, cache_ = forward(params, self.config, recipe, tokens, start, count, cache, keep)
        return hidden, cast("KVCache", cache_)

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
        medium = SoftChunk(vectors, self.encoders[encoder].sight)
        padding = jnp.full(vectors.shape[:2], self.config.pad_id)
        found = forward(params, self.config, recipe, padding, start, count, cache, keep, medium=medium)
        return found[0], cast("KVCache", found[1])

    def embed(self, params: Any, recipe: Recipe, tokens: jax.Array, count: jax.Array) -> jax.Array:
        return text_vectors(params, self.config, recipe, tokens, count)

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None) -> jax.Array:
        return logits(params, self.config, recipe, hidden, real)

    def among(self, where: DeviceGrid) -> Architecture:
        encoders = self.encoders if where.here else ()  # they do not run on several hosts
        return DividedGemma(self.config, where, encoders)
