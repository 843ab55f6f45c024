"""Make a tiny random Gemma 3, read a prompt, and sample a few tokens from it.

The weights are random, so the tokens mean nothing; the program is the one that real weights run.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.catalog import published
from langchain_gemma_jax.models.kv_cache import allocate
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.steps import read

PROMPT = [2, 105, 2364, 107, 9259, 106, 107, 105, 4368, 107]
CAPACITY, CHUNK, TEMPERATURE = 64, 16, 0.8


def main() -> None:
    """Run the pieces in order: configuration, recipe, weights, cache, chunk, steps."""
    # The 270M architecture with every mechanism kept, and its sizes cut down.
    full = published("gemma-3-270m")
    config = full.replace(vocab_size=16384, width=64, layers=full.layers[:6])
    recipe = choose_recipe("float32")
    params = random_params(config, recipe)
    cache = allocate(config, rows=1, capacity=CAPACITY, dtype=recipe.dtype)
    print(f"A random Gemma 3: {len(config.layers)} layers, width {config.width}, on {jax.devices()[0].device_kind}")

    began = time.perf_counter()
    chunk = jnp.array([PROMPT + [config.pad_id] * (CHUNK - len(PROMPT))], jnp.int32)
    count = jnp.array([len(PROMPT)], jnp.int32)
    scores, cache = read(params, config, recipe, chunk, jnp.array([0], jnp.int32), count, cache)
    print(f"Read {len(PROMPT)} tokens in {time.perf_counter() - began:.2f} s, compilation included")

    key, sampled = jax.random.key(0), []
    for position in range(len(PROMPT), len(PROMPT) + 12):
        token = jax.random.categorical(jax.random.fold_in(key, position), scores / TEMPERATURE).astype(jnp.int32)
        sampled.append(int(token[0]))
        start, one = jnp.array([position], jnp.int32), jnp.array([1], jnp.int32)
        scores, cache = read(params, config, recipe, token[:, None], start, one, cache)
    print("Sampled token ids:", *sampled)


if __name__ == "__main__":
    main()
