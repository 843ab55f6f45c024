"""The forward pass for training: whole rows at once, no cache, several conversations a row.

Its numbers are those of ``langchain_gemma_jax.models.gemma.forward`` (a test compares them), which has a cache to
keep and one conversation a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig
from langchain_gemma_jax.models.gemma.feed_forward import gated
from langchain_gemma_jax.models.gemma.norms import rms_norm
from langchain_gemma_jax.models.gemma.rope import rotate, rotation
from langchain_gemma_jax.models.seams.params import Params
from training.attend import attend
from training.look import Asked, Looking, look_loss
from training.passed_on import passed_on_loss
from training.product import product
from training.which import which_loss

_PASSED = 0.05  # its gradient is more than ten times as large as that of all the rest: little of it was learned beside
Weights = Mapping[str, jax.Array]

_LONG = 1024  # the attention of longer rows is computed again for the gradient, rather than kept: it would fill a GPU


def hidden_states(
    params: Params, config: ModelConfig, tokens: jax.Array, segments: jax.Array, dtype: jnp.dtype
) -> tuple[jax.Array, list[Asked], list[jax.Array]]:
    """Hidden states ``[row, token, width]`` for ``tokens [row, token]``; what each layer's heads ask; what it makes.

    A token sees those of its own segment only. Products are taken in ``dtype`` and summed in float32.
    """
    asked: list[Asked] = []
    states: list[jax.Array] = []
    positions = jnp.arange(tokens.shape[1])[None]
    x = cast("jax.Array", params["embed"])[tokens] * config.width**0.5
    layers = cast("Sequence[Weights]", params["layers"])
    for layer, weights in zip(config.layers, layers, strict=True):
        run: Callable[..., tuple[jax.Array, Asked]] = partial(_layer, config, layer, dtype)
        if tokens.shape[1] > _LONG:
            run = jax.checkpoint(run)
        x, heads = run(weights, x, positions, segments)
        asked.append(heads)
        states.append(x)
    return rms_norm(x, cast("jax.Array", params["final_norm"]), config.norm_eps), asked, states


def mean_loss(
    params: Params,
    config: ModelConfig,
    batch: Mapping[str, jax.Array],
    dtype: jnp.dtype,
    looking: Sequence[Looking] = (),
    look_weight: float = 0.0,
    after: Sequence[int] = (),
    passing: Sequence[int] = (),
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The weighted mean loss of what is scored, and how well the model's own tokens, of weight 1, are foreseen.

    The heads ``looking`` are taught where to look, with so much weight; and layers ``after`` which it is known,
    and ``passing`` on how a value begins.
    """
    hidden, asked, states = hidden_states(params, config, batch["tokens"], batch["segments"], dtype)
    targets, weights = batch["targets"], batch["weights"]
    if (places := batch.get("scored")) is not None:
        hidden = jnp.take_along_axis(hidden, places[..., None], axis=1)
        targets, weights = (jnp.take_along_axis(x, places, axis=1) for x in (targets, weights))
    scores = product(hidden, cast("jax.Array", params["embed"]), dtype)
    best = jax.nn.logsumexp(scores, axis=-1)
    losses = best - jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
    own = (weights == 1).astype(jnp.float32)
    count = jnp.maximum(jnp.sum(own), 1.0)
    right = (jnp.argmax(scores, axis=-1) == targets).astype(jnp.float32)
    figures = {"loss": jnp.sum(losses * own) / count, "accuracy": jnp.sum(right * own) / count}
    loss = jnp.sum(losses * weights) / jnp.maximum(jnp.sum(weights), 1.0)
    if looking:
        missed, figures["looks"] = look_loss(config, looking, asked, batch)
        loss = loss + look_weight * missed
    if after:
        missed, figures["which"] = which_loss(states, after, batch)
        loss = loss + look_weight * missed
    if passing:
        missed, figures["passed"] = passed_on_loss(states, passing, cast("jax.Array", params["embed"]), batch)
        loss = loss + look_weight * _PASSED * missed
    return loss, figures


def _layer(
    config: ModelConfig,
    layer: LayerConfig,
    dtype: jnp.dtype,
    weights: Weights,
    x: jax.Array,
    positions: jax.Array,
    segments: jax.Array,
) -> tuple[jax.Array, Asked]:
    h = rms_norm(x, weights["attn_norm"], config.norm_eps)
    mixed, asked = _attention(h, weights, config, layer, positions, segments, dtype)
    h = product(mixed, weights["attn_out"], dtype)
    x = x + rms_norm(h, weights["post_attn_norm"], config.norm_eps)
    h = rms_norm(x, weights["ffw_norm"], config.norm_eps)
    h = product(gated(product(h, weights["gate_up"], dtype)), weights["down"], dtype)
    return x + rms_norm(h, weights["post_ffw_norm"], config.norm_eps), asked


def _attention(
    x: jax.Array,
    weights: Weights,
    config: ModelConfig,
    layer: LayerConfig,
    positions: jax.Array,
    segments: jax.Array,
    dtype: jnp.dtype,
) -> tuple[jax.Array, Asked]:
    rows, tokens, _ = x.shape
    heads = product(x, weights["qkv"], dtype).reshape(rows, tokens, -1, layer.head_dim)
    queries, keys, values = jnp.split(heads, [config.heads, config.heads + layer.kv_heads], axis=2)
    turn = rotation(layer.rope, layer.head_dim, positions)
    queries = rotate(rms_norm(queries, weights["q_norm"], config.norm_eps), turn) * config.attention_scale
    keys = rotate(rms_norm(keys, weights["k_norm"], config.norm_eps), turn)
    if jax.default_backend() != "cpu":  # where short products are quick in low precision too
        queries, keys, values = queries.astype(dtype), keys.astype(dtype), values.astype(dtype)
    # Products of many heads are quick on a CPU only where heads come before tokens.
    queries, keys, values = (jnp.swapaxes(x, 1, 2) for x in (queries, keys, values))
    queries = queries.reshape(rows, layer.kv_heads, -1, tokens, layer.head_dim)
    mixed = attend(queries, keys, values, segments, layer.window)
    mixed = mixed.reshape(rows, config.heads, tokens, layer.head_dim)
    mixed = jnp.swapaxes(mixed, 1, 2).reshape(rows, tokens, config.heads * layer.head_dim)
    return mixed, (queries, keys)
