"""Gemma as the engine's ``Architecture``: every generation, by its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import jax

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig
from langchain_gemma_jax.models.gemma.divided_gemma import DividedGemma
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward, logits
from langchain_gemma_jax.models.gemma.gemma_facts import GemmaFacts
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from langchain_gemma_jax.models.seams.adapters import AdaptedLayer, AdaptedLayers, AdaptedMatrix
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder
from langchain_gemma_jax.models.seams.placement import DeviceGrid
from langchain_gemma_jax.models.seams.recipe import Recipe


@dataclass(frozen=True)
class Gemma(GemmaFacts):
    """A Gemma of any generation."""

    encoders: tuple[MediaEncoder, ...] = ()

    @property
    def adapted_layers(self) -> AdaptedLayers | None:
        return None if self.embeds else tuple(_adapted_layer(self.config, layer) for layer in self.config.layers)

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
        tokens: jax.Array,
        vectors: jax.Array,
        start: jax.Array,
        count: jax.Array,
        cache: KVCache,
        keep: jax.Array,
    ) -> tuple[jax.Array, KVCache]:
        medium = SoftChunk.of(self.encoders[encoder], vectors)
        words = self.words_of(tokens, medium.soft)
        found = forward(params, self.config, recipe, words, start, count, cache, keep, medium=medium)
        return found[0], cast("KVCache", found[1])

    def embed(self, params: Any, recipe: Recipe, tokens: jax.Array, count: jax.Array) -> jax.Array:
        return text_vectors(params, self.config, recipe, tokens, count)

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None) -> jax.Array:
        return logits(params, self.config, recipe, hidden, real)

    def among(self, where: DeviceGrid) -> Architecture:
        encoders = self.encoders if where.here else ()  # they do not run on several hosts
        return DividedGemma(self.config, where, encoders)


def _adapted_layer(config: ModelConfig, layer: LayerConfig) -> AdaptedLayer:
    """Return a layer's projections of attention and of the dense feed-forward."""
    width, queries, keys = config.width, config.heads * layer.head_dim, layer.kv_heads * layer.head_dim
    of_kv = {} if not layer.owns_kv else {"k_proj": keys} if layer.k_eq_v else {"k_proj": keys, "v_proj": keys}
    return AdaptedLayer(
        {
            "qkv": AdaptedMatrix(width, {"q_proj": queries, **of_kv}),
            "attn_out": AdaptedMatrix(queries, {"o_proj": width}),
            "gate_up": AdaptedMatrix(width, {"gate_proj": layer.ffw_width, "up_proj": layer.ffw_width}),
            "down": AdaptedMatrix(layer.ffw_width, {"down_proj": width}),
        },
        frozenset() if layer.owns_kv else frozenset({"k_proj", "v_proj"}),
    )
