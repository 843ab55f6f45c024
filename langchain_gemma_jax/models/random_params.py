"""Random weights for any configuration: for tests, demonstrations and benchmarks without a download."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.params import Params
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import stored_as


def random_params(config: ModelConfig, recipe: Recipe, seed: int = 0) -> Params:
    """Return weights that keep activations at an ordinary size: matrices scaled by their inputs, norms at one."""
    layers: list[dict[str, Any]] = [{} for _ in config.layers]
    params: Params = {"layers": layers}
    key = jax.random.key(seed)
    for number, (path, spec) in enumerate(walk(abstract(config, recipe.dtype, recipe.layout))):
        weight = _stored(_draw(jax.random.fold_in(key, number), spec), recipe, path, spec)
        match path:
            case (str(name),):
                params[name] = weight
            case ("layers", int(index), str(name)):
                layers[index][name] = weight
    return params


def _draw(key: jax.Array, spec: ArraySpec) -> jax.Array:
    if len(spec.shape) < 2:
        return jnp.ones(spec.stored_shape, spec.dtype)
    normal: jax.Array = jax.random.normal(key, spec.stored_shape, jnp.float32)
    return jnp.asarray(normal * spec.shape[-1] ** -0.5, spec.dtype)


def _stored(array: jax.Array, recipe: Recipe, path: Path, spec: ArraySpec) -> Any:
    """Return the weight as the recipe stores it."""
    if stored_as(recipe.storage, path, spec) is spec:
        return array
    return jax.tree.map(jnp.asarray, recipe.storage.pack(path, spec, np.asarray(array)))
