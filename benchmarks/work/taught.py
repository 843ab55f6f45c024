"""Random weights that give one answer: what a trained model would say, without training one.

Drafts are worth what the text is worth, so the text has to be a real one, and random weights never
write any. Here they are taught one answer by a single linear solve, in two arrays of the last layer:

- its closing norm is turned up, so that what its feed-forward gives drowns the rest of the residual;
- its ``down`` matrix is multiplied by the matrix that turns what it gives at each place of the
  answer, which random weights make different everywhere, into the embedding of the token that comes next.

Every other array, every shape, and so the work for a token stay what they were, and the engine
generates greedily as always. It does not know what comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax import Model
from langchain_gemma_jax.models.gemma.forward import forward
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.params import Params

LOUD = 1e4  # beside a residual of about 10
RIDGE = 1e-3  # of the mean square: rounding is not to be fitted

Layer = dict[str, jax.Array]


def teach(model: Model, prompt: Sequence[int], answer: Sequence[int]) -> Model:
    """The model with two arrays of its own, which continues ``prompt`` with ``answer``; all others are shared."""
    layer = _last_layer(model.params)
    loud = layer | {"post_ffw_norm": jnp.full_like(layer["post_ffw_norm"], LOUD)}
    given = _given(_with_last_layer(model, loud), [*prompt, *answer[:-1]])[len(prompt) - 1 :]
    turn = _solve(given, _wanted(model, answer))
    first = model.recipe.layers.out_first
    down = np.asarray(layer["down"], np.float32)
    turned = turn @ down if first else down @ turn.T
    return _with_last_layer(model, loud | {"down": _like(turned, layer["down"])})


def _given(model: Model, tokens: Sequence[int]) -> npt.NDArray[np.float32]:
    """Return the last feed-forward's output at each token, up to its length: ``[token, width]``."""
    capacity = -(-len(tokens) // 256) * 256
    padded = jnp.array([[*tokens, *[0] * (capacity - len(tokens))]], jnp.int32)
    row = jnp.zeros((1,), jnp.int32)
    cache = allocate(model.config.cache_layout, rows=1, capacity=capacity, dtype=model.recipe.dtype)
    read = jax.jit(partial(forward, config=model.config, recipe=model.recipe))
    hidden, _ = read(model.params, tokens=padded, start=row, count=row + len(tokens), cache=cache)
    found: npt.NDArray[np.float32] = np.asarray(hidden[0, : len(tokens)]) / np.asarray(model.params["final_norm"])
    return found


def _wanted(model: Model, answer: Sequence[int]) -> npt.NDArray[np.float32]:
    """Return the wanted output: after the norm, the direction to the next token's embedding. ``[token, width]``."""
    table = cast("jax.Array", model.params["embed"])
    ids = jnp.array(answer, jnp.int32)
    rows = np.asarray(table[ids] if model.recipe.embed.out_first else table[:, ids].T, np.float32)
    wanted = rows / np.asarray(model.params["final_norm"])
    unit: npt.NDArray[np.float32] = wanted / np.sqrt(np.mean(wanted**2, axis=1, keepdims=True))
    return unit


def _solve(given: npt.NDArray[np.float32], wanted: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The smallest matrix that turns each row of ``given`` into that of ``wanted``, nearly: ``[width, width]``."""
    products = given.astype(np.float64) @ given.T
    products += RIDGE * np.mean(np.diag(products)) * np.eye(len(products))
    return np.asarray(np.linalg.solve(products, wanted).T @ given)


def _like(values: npt.NDArray[np.float64], array: jax.Array) -> Any:
    return jax.device_put(values.astype(array.dtype), array.sharding)


def _last_layer(params: Params) -> Layer:
    return cast("list[Layer]", params["layers"])[-1]


def _with_last_layer(model: Model, layer: Layer) -> Model:
    layers = cast("list[Layer]", model.params["layers"])
    return replace(model, params=model.params | {"layers": [*layers[:-1], layer]})
