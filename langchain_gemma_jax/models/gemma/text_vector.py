"""The embedding of a whole text (EmbeddingGemma): the mean of its tokens' outputs, multiplied by matrices."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.abstract import TEXT_MATRIX
from langchain_gemma_jax.models.configuration.model_config import EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.gemma.forward import Params, forward
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.recipe import Recipe

_SHORTEST = 1e-12  # the smallest length that a vector is divided by, as in the reference


def text_vectors(
    params: Params,
    config: ModelConfig,
    recipe: Recipe,
    tokens: jax.Array,  # [row, token] int32
    count: jax.Array,  # [row] int32: tokens that are real; the rest is padding. 0: the whole row is padding
) -> jax.Array:
    """Return the embeddings of whole texts, one per row: float32 ``[row, width]``. Padding changes no result."""
    hidden, _ = forward(params, config, recipe, tokens, jnp.zeros_like(count), count, None)
    real = (jnp.arange(tokens.shape[1])[None, :] < count[:, None])[:, :, None]
    vectors = jnp.sum(jnp.where(real, hidden, 0.0), axis=1) / jnp.maximum(count, 1)[:, None].astype(jnp.float32)
    embedding = config.embedding or EmbeddingConfig()
    for number in range(len(embedding.dense)):
        vectors = linear(vectors, params[f"{TEXT_MATRIX}{number}"], recipe.layers)
    if not embedding.normed:
        return vectors
    return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), _SHORTEST)
