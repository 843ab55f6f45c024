"""Gemma as the engine's ``Architecture``: every generation, by its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.gemma.divided_gemma import DividedGemma
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward_apart, logits
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

    def among(self, where: DeviceGrid) -> Architecture:
        encoders = self.encoders if where.here else ()  # they do not run on several hosts
        return DividedGemma(self.config, where, encoders)
