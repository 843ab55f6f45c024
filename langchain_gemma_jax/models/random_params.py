"""Random weights for any configuration: for tests, demonstrations and benchmarks without a download."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.abstract import ArraySpec, abstract, walk
from langchain_gemma_jax.models.config import ModelConfig
from langchain_gemma_jax.models.model import Params
from langchain_gemma_jax.models.recipes.recipe import Recipe


def random_params(config: ModelConfig, recipe: Recipe, seed: int = 0) -> Params:
    """Weights whose activations stay of ordinary size: matrices scaled by their inputs, norms at one."""
    layers: list[dict[str, jax.Array]] = [{} for _ in config.layers]
    params: Params = {"layers": layers}
    key = jax.random.key(seed)
    for number, (path, spec) in enumerate(walk(abstract(config, recipe.dtype, recipe.layout))):
        array = _draw(jax.random.fold_in(key, number), spec)
        match path:
            case (str(name),):
                params[name] = array
            case ("layers", int(index), str(name)):
                layers[index][name] = array
    return params


def _draw(key: jax.Array, spec: ArraySpec) -> jax.Array:
    if len(spec.shape) < 2:
        return jnp.ones(spec.stored_shape, spec.dtype)
    normal: jax.Array = jax.random.normal(key, spec.stored_shape, jnp.float32)
    return jnp.asarray(normal * spec.shape[-1] ** -0.5, spec.dtype)
