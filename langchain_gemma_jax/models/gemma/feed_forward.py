"""The parts of a layer after attention: the dense feed-forward, the experts, the per-layer input."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels import fused_ops
from langchain_gemma_jax.models.configuration.model_config import ModelConfig, MoeConfig
from langchain_gemma_jax.models.gemma.norms import rms_norm, with_derivative
from langchain_gemma_jax.models.gemma.teamwork import ALONE, Teamwork
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.recipe import BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import Layer, matrix_at


def gated(gate_up: jax.Array, form: BetweenForm = BetweenForm.XLA) -> jax.Array:
    """Return ``gelu(gate) * up`` of the joint product ``[..., 2 * width]``."""
    if form is BetweenForm.KERNEL and gate_up.size and fused_ops.can_turn(gate_up.shape[-1]):
        return with_derivative(fused_ops.gated, gated, gate_up)
    gate, up = jnp.split(gate_up, 2, axis=-1)
    return jax.nn.gelu(gate, approximate=True) * up


def feed_forward(
    x: jax.Array,
    h: jax.Array,
    weights: Layer,
    config: ModelConfig,
    recipe: Recipe,
    index: int = 0,
    team: Teamwork = ALONE,
    real: jax.Array | None = None,
) -> jax.Array:
    """Return the feed-forward of layer ``index``, before its closing norm. ``x`` is the residual, and ``h`` it normed.

    ``real``: the number of tokens before the padding, see ``linear``.
    """
    form = recipe.between
    inner = team.gather_input(index, "down", gated(linear(h, weights["gate_up"], recipe.layers, real), form))
    dense = linear(inner, weights["down"], recipe.layers, real)
    if config.moe is None:
        return team.sums(index, {"down": dense})["down"]
    flat = x.reshape(-1, x.shape[-1])
    choice, share = _route(flat, weights, config, config.moe, recipe)
    h = rms_norm(flat, weights["moe_norm"], config.norm_eps, form)
    choice, experts = team.own_experts(index, choice, config.moe.experts)
    sparse = _experts(h, choice, share, weights, config.moe, recipe, experts).reshape(x.shape)
    both = team.sums(index, {"down": dense, "experts_down": sparse})
    dense = rms_norm(both["down"], weights["dense_post_norm"], config.norm_eps, form)
    return dense + rms_norm(both["experts_down"], weights["moe_post_norm"], config.norm_eps, form)


def per_layer_input(x: jax.Array, signal: jax.Array, weights: Layer, recipe: Recipe) -> jax.Array:
    """Return what this layer's slice of the second embedding, ``signal [row, token, width]``, adds, before its norm."""
    gate = jax.nn.gelu(linear(x, weights["ple_gate"], recipe.layers), approximate=True)
    return linear(gate * signal, weights["ple_out"], recipe.layers)


def _route(
    x: jax.Array, weights: Layer, config: ModelConfig, moe: MoeConfig, recipe: Recipe
) -> tuple[jax.Array, jax.Array]:
    """Return each token's experts and their weights: two arrays ``[token, experts_per_token]``."""
    h = rms_norm(x, None, config.norm_eps, recipe.between) * weights["router_scale"][None] * config.width**-0.5
    odds = jax.nn.softmax(linear(h, weights["router"], recipe.layers), axis=-1)
    share, choice = jax.lax.top_k(odds, moe.experts_per_token)
    share = share / jnp.sum(share, axis=-1, keepdims=True)
    return choice, share * weights["expert_scale"][choice]


def _experts(
    x: jax.Array,
    choice: jax.Array,
    share: jax.Array,
    weights: Layer,
    moe: MoeConfig,
    recipe: Recipe,
    here: int | None = None,
) -> jax.Array:
    """Return the weighted sum of the chosen experts' outputs: ``[token, width]``. ``here``: experts on this device.

    The (token, expert) pairs are sorted by expert and cut into tiles of one expert each, and a loop
    computes one tile per iteration. So an expert that no token chose is not read, and one that many
    tokens chose is read once per tile.
    """
    pairs = choice.size
    tile = 1 << max(0, (pairs // moe.experts).bit_length() - 1)  # the mean load of an expert, as a power of two
    by_expert = jnp.argsort(choice.reshape(-1))
    token, weight = by_expert // moe.experts_per_token, share.reshape(-1)[by_expert]
    load = jnp.bincount(choice.reshape(-1), length=moe.experts if here is None else here).astype(jnp.int32)
    first_pair = jnp.cumulative_sum(load, include_initial=True)
    tiles = (load + tile - 1) // tile
    first_tile = jnp.cumulative_sum(tiles, include_initial=True)

    def one_tile(index: jax.Array, out: jax.Array) -> jax.Array:
        expert = jnp.searchsorted(first_tile, index, side="right").astype(jnp.int32) - 1
        pair = first_pair[expert] + (index - first_tile[expert]) * tile + jnp.arange(tile, dtype=jnp.int32)
        inside = pair < first_pair[expert + 1]
        pair = jnp.where(inside, pair, 0)
        h = gated(linear(x[token[pair]], matrix_at(weights["experts_gate_up"], expert), recipe.layers), recipe.between)
        answer = linear(h, matrix_at(weights["experts_down"], expert), recipe.layers)
        return out.at[token[pair]].add(jnp.where(inside, weight[pair], 0.0)[:, None] * answer)

    answers: jax.Array = jax.lax.fori_loop(0, first_tile[-1], one_tile, jnp.zeros(x.shape, jnp.float32))
    return answers
