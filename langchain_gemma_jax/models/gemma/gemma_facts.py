"""The part of a Gemma's ``Architecture`` that is the same on one device and on several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.model_config import CacheLayout, EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.recipe import Recipe


@dataclass(frozen=True)
class GemmaFacts(Architecture):
    """The sizes and limits of a Gemma, from its configuration."""

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
        return None if self.embedding is None else self.embedding.width(self.config.width)

    @property
    def embedding(self) -> EmbeddingConfig | None:
        return self.config.embedding

    @property
    def gemma(self) -> ModelConfig:
        return self.config

    def abstract(self, recipe: Recipe) -> Any:
        return recipe.abstract(self.config)

    def words_of(self, tokens: jax.Array, soft: int | None) -> jax.Array:
        """Return a medium's ids with padding in the place of its soft tokens. ``soft``: their number; None: all."""
        if soft is None:
            return jnp.full(tokens.shape, self.config.pad_id)
        return jnp.where(jnp.arange(tokens.shape[1])[None, :] < jnp.int32(soft), self.config.pad_id, tokens)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        return numbers_at_work(self.config, tokens, context)


def numbers_at_work(config: ModelConfig, tokens: int, context: int) -> int:
    """Estimate the float32 numbers alive at once while a chunk of ``tokens`` attends to a context."""
    widest = max(2 * layer.ffw_width + config.heads * layer.head_dim for layer in config.layers)
    return tokens * (widest + 2 * config.width + config.heads * context)
