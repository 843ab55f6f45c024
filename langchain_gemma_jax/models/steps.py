"""The two device programs of plain greedy or sampled generation: read a chunk, and take one step.

Both are jitted with the architecture and the recipe as static arguments; the cache is donated, so
keep only what comes back. One program is compiled for each combination of shapes.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.config import ModelConfig
from langchain_gemma_jax.models.forward import Params, forward, logits
from langchain_gemma_jax.models.kv_cache import KVCache
from langchain_gemma_jax.models.recipes import Recipe


@partial(jax.jit, static_argnames=("config", "recipe"), donate_argnames=("cache",))
def read(
    params: Params,
    config: ModelConfig,
    recipe: Recipe,
    tokens: jax.Array,  # [row, token] int32, padded
    start: jax.Array,  # [row] int32
    count: jax.Array,  # [row] int32
    cache: KVCache,
) -> tuple[jax.Array, KVCache]:
    """Read a chunk; give the scores after each row's last real token: float32 ``[row, vocab]``."""
    hidden, cache = forward(params, config, recipe, tokens, start, count, cache, keep=count - 1)
    return logits(params, config, recipe, hidden[:, 0]), cache


@partial(jax.jit, static_argnames=("config", "recipe"), donate_argnames=("cache",))
def greedy_step(
    params: Params,
    config: ModelConfig,
    recipe: Recipe,
    token: jax.Array,  # [row] int32: the newest token, not yet in the cache
    start: jax.Array,  # [row] int32
    cache: KVCache,
) -> tuple[jax.Array, jax.Array, KVCache]:
    """Read one token a row; give the likeliest next token ``[row]``, the next ``start`` and the cache."""
    count = jnp.ones_like(start)
    hidden, cache = forward(params, config, recipe, token[:, None], start, count, cache)
    best = jnp.argmax(logits(params, config, recipe, hidden[:, 0]), axis=-1).astype(jnp.int32)
    return best, start + 1, cache
