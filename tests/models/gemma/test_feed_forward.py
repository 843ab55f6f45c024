"""The feed-forward parts against loops in float64."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.model_config import MoeConfig, PerLayerInputConfig
from langchain_gemma_jax.models.gemma import feed_forward as module
from tests.parity.tiny import FLOAT32, parameters, small

QUICK = {"compiler_options": {"xla_backend_optimization_level": 0}}
gated = jax.jit(module.gated, **QUICK)
feed_forward = jax.jit(module.feed_forward, static_argnums=(3, 4), **QUICK)
per_layer_input = jax.jit(module.per_layer_input, static_argnums=3, **QUICK)
route = jax.jit(module._route, static_argnums=(2, 3, 4), **QUICK)
experts = jax.jit(module._experts, static_argnums=(4, 5), **QUICK)

MOE = MoeConfig(experts=5, experts_per_token=2, ffw_width=6)
WIDTH = 32


def gelu(x):
    """The tanh approximation, which differs from the exact one in the fourth digit."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def normed(x, scale=1.0):
    x = np.asarray(x, np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * np.asarray(scale, np.float64)


def ffw(x, gate_up, down):
    gate, up = np.split(x @ np.asarray(gate_up, np.float64).T, 2, axis=-1)
    return (gelu(gate) * up) @ np.asarray(down, np.float64).T


def config(**changes):
    return small("gemma-4-26b-a4b").replace(**{"moe": MOE} | changes)


def layer(seed=0, **changes):
    return parameters(config(**changes), seed=seed)["layers"][0]


def inputs(*shape):
    return np.random.default_rng(shape).normal(0, 2, shape).astype(np.float32)


def test_the_gate_is_the_tanh_approximation():
    x = np.linspace(-6, 6, 50)
    found = gated(np.concatenate([x, np.full(50, 2.0)]).astype(np.float32))
    np.testing.assert_allclose(found, gelu(x) * 2, atol=3e-6)


def test_a_dense_layer():
    weights, x = layer(), inputs(2, 3, WIDTH)
    found = feed_forward(x, normed(x, weights["ffw_norm"]).astype(np.float32), weights, config(moe=None), FLOAT32)
    expected = ffw(normed(x, weights["ffw_norm"]), weights["gate_up"], weights["down"])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def routed(x, weights):
    """Each token's experts with their shares, as pairs."""
    odds = normed(x) * np.asarray(weights["router_scale"], np.float64) * WIDTH**-0.5
    odds = np.exp(odds @ np.asarray(weights["router"], np.float64).T)
    for row in odds:
        chosen = np.argsort(-row)[: MOE.experts_per_token]
        yield [(e, row[e] / row[chosen].sum() * float(weights["expert_scale"][e])) for e in chosen]


def test_the_router_shares_among_the_best_and_scales_each():
    weights, x = layer(), inputs(7, WIDTH)
    choice, share = route(x, weights, config(), MOE, FLOAT32)
    for ours, theirs in zip(zip(choice, share, strict=True), routed(x, weights), strict=True):
        assert ours[0].tolist() == [expert for expert, _ in theirs]
        np.testing.assert_allclose(ours[1], [part for _, part in theirs], rtol=1e-5)


@pytest.mark.parametrize("tokens", [1, 9])
def test_a_layer_with_experts_adds_two_normed_answers(tokens):
    weights, x = layer(), inputs(1, tokens, WIDTH)
    found = feed_forward(x, normed(x, weights["ffw_norm"]).astype(np.float32), weights, config(), FLOAT32)
    dense = ffw(normed(x[0], weights["ffw_norm"]), weights["gate_up"], weights["down"])
    h = normed(x[0], weights["moe_norm"])
    sparse = np.stack([
        sum(part * ffw(h[i], weights["experts_gate_up"][e], weights["experts_down"][e]) for e, part in parts)
        for i, parts in enumerate(routed(x[0], weights))
    ])  # fmt: skip
    expected = normed(dense, weights["dense_post_norm"]) + normed(sparse, weights["moe_post_norm"])
    np.testing.assert_allclose(found[0], expected, atol=2e-5)


CHOICES = {
    "evenly": [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]] * 2,
    "all the same": [[2, 4]] * 10,
    "one alone": [[3, 0]],
    "many, and a few": [[1, 0]] * 9 + [[2, 3]],
    "any": np.argsort(np.random.default_rng(0).random((10, 5)), axis=1)[:, :2].tolist(),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_every_load_of_experts_is_added_up_right(choice):
    weights = layer()
    x, share = inputs(len(choice), WIDTH), np.random.default_rng(1).random((len(choice), 2)).astype(np.float32)
    found = experts(x, np.array(choice, np.int32), share, weights, MOE, FLOAT32)
    expected = np.zeros(x.shape)
    for token, chosen in enumerate(choice):
        for which, expert in enumerate(chosen):
            answer = ffw(x[token], weights["experts_gate_up"][expert], weights["experts_down"][expert])
            expected[token] += share[token, which] * answer
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_an_expert_that_nobody_chose_is_not_computed():
    """Its weights may be anything."""
    weights = layer()
    for name in ("experts_gate_up", "experts_down"):
        weights[name] = np.array(weights[name])
        weights[name][3] = np.nan
    choice = np.array([[0, 1], [4, 1], [2, 0]], np.int32)
    found = experts(inputs(3, WIDTH), choice, np.ones((3, 2), np.float32), weights, MOE, FLOAT32)
    assert np.isfinite(found).all()
    choice[1, 0] = 3
    found = experts(inputs(3, WIDTH), choice, np.ones((3, 2), np.float32), weights, MOE, FLOAT32)
    assert np.isnan(found).any(axis=1).tolist() == [False, True, False]


def test_the_per_layer_input_is_gated_by_the_residual():
    ple = PerLayerInputConfig(width=4, vocab_size=160)
    weights, x, signal = layer(per_layer_input=ple), inputs(2, 3, WIDTH), inputs(2, 3, 4)
    found = per_layer_input(x, signal, weights, FLOAT32)
    gate = gelu(x.astype(np.float64) @ np.asarray(weights["ple_gate"], np.float64).T)
    np.testing.assert_allclose(found, (gate * signal) @ np.asarray(weights["ple_out"], np.float64).T, atol=1e-5)
