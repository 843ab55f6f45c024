"""Attention against its definition, a query and a head at a time, in float64."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma import attention
from langchain_gemma_jax.models.gemma.attention import VisibleKV
from langchain_gemma_jax.models.gemma.rope import rotate, rotation
from langchain_gemma_jax.models.recipes import Attention, AttentionForm, Recipe
from langchain_gemma_jax.models.seams.kv_cache import STEP_SLACK, LayerKV, slot_positions

QUICK = {"compiler_options": {"xla_backend_optimization_level": 0}}
attend = jax.jit(attention.attend, static_argnums=(3, 4, 5), **QUICK)
project = jax.jit(attention.project, static_argnums=(2, 3, 4), **QUICK)
remember = jax.jit(attention.remember, static_argnums=0, **QUICK)

HEADS, KV_HEADS, SIZE, WIDTH = 6, 2, 4, 10
LAYER = LayerConfig(kv_heads=KV_HEADS, head_dim=SIZE, ffw_width=1, rope=Rope(100.0))
LOCAL = replace(LAYER, window=3)
CONFIG = ModelConfig("gemma", 10, WIDTH, HEADS, (LAYER,), 100, attention_scale=0.5)
FLOAT32 = Recipe("float32")


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def by_hand(queries, query_at, keys, values, key_at, window=None, cap=None):
    """[token, head, size] from one row's [token, head, size] and [kv_head, slot, size]."""
    out = np.zeros(queries.shape)
    for token, head in np.ndindex(queries.shape[:2]):
        shared = head // (HEADS // KV_HEADS)
        seen = [
            slot
            for slot, at in enumerate(key_at)
            if 0 <= at <= query_at[token] and (window is None or query_at[token] - at < window)
        ]
        scores = keys[shared, seen].astype(np.float64) @ queries[token, head]
        if cap is not None:
            scores = cap * np.tanh(scores / cap)
        shares = np.exp(scores - scores.max())
        out[token, head] = shares / shares.sum() @ values[shared, seen]
    return out


@pytest.mark.parametrize("pairs", [0, 100], ids=["batched", "pair by pair"])
@pytest.mark.parametrize("layer", [LAYER, LOCAL], ids=["global", "local"])
@pytest.mark.parametrize("cap", [None, 0.7])
def test_attention_is_its_definition(layer, cap, pairs):
    """With slots in any order, empty ones, ones that are too new, and rows at different positions."""
    queries, keys, values = (
        normal(2, 3, HEADS, SIZE),
        normal(2, KV_HEADS, 9, SIZE),
        normal(2, KV_HEADS, 9, SIZE, seed=1),
    )
    query_at = np.array([[5, 6, 7], [2, 3, 4]])
    key_at = np.array([[7, 3, 4, 0, -1, 5, 6, 1, 9], [0, 1, 2, 3, 4, -1, -2, -9, 5]])
    found = attend(
        jnp.asarray(queries),
        jnp.asarray(query_at),
        VisibleKV(jnp.asarray(keys), jnp.asarray(values), jnp.asarray(key_at)),
        CONFIG.replace(attention_softcap=cap),
        layer,
        Recipe("float32", attention_pairs=pairs),
    )
    for row in range(2):
        expected = by_hand(queries[row], query_at[row], keys[row], values[row], key_at[row], layer.window, cap)
        np.testing.assert_allclose(found[row].reshape(3, HEADS, SIZE), expected, atol=1e-6)


def test_a_query_that_sees_nothing_stays_finite():
    """As in a row of nothing but padding."""
    seen = VisibleKV(jnp.ones((1, KV_HEADS, 4, SIZE)), jnp.ones((1, KV_HEADS, 4, SIZE)), jnp.full((1, 4), -1))
    found = attend(jnp.ones((1, 1, HEADS, SIZE)), jnp.zeros((1, 1), jnp.int32), seen, CONFIG, LAYER, FLOAT32)
    assert np.isfinite(found).all()


@pytest.mark.long
@pytest.mark.skipif(not kernels_run(), reason="no kernels run here")
def test_attention_by_kernels_has_derivatives():
    """Those of products: of queries, keys and values."""
    layer, at = replace(LAYER, head_dim=16), jnp.arange(3)[None]
    queries, keys, values = (
        jnp.asarray(normal(1, *shape, seed=2)) for shape in ((3, HEADS, 16), (KV_HEADS, 5, 16), (KV_HEADS, 5, 16))
    )

    def total(form, queries, keys, values):
        seen = VisibleKV(keys, values, jnp.arange(5)[None], jnp.zeros(1, jnp.int32))
        recipe = Recipe("float32", attention=Attention(form, form))
        return jnp.sum(attention.attend_all(queries, at, [seen], CONFIG, layer, recipe) ** 2)

    ours, plain = (jax.grad(total, argnums=(1, 2, 3))(form, queries, keys, values) for form in AttentionForm)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), ours, plain)


def weights(kv_parts=2):
    return {
        "qkv": jnp.asarray(normal((HEADS + kv_parts * KV_HEADS) * SIZE, WIDTH)),
        "q_norm": jnp.asarray(normal(SIZE)),
        "k_norm": jnp.asarray(normal(SIZE, seed=1)),
    }


X = normal(2, 3, WIDTH)
AT = jnp.array([[0, 1, 2], [7, 8, 9]])


def projected(config, layer, kv_parts=2):
    parts = project(jnp.asarray(X), weights(kv_parts), config, layer, FLOAT32, rotation(layer.rope, SIZE, AT))
    return [None if part is None else np.asarray(part) for part in parts]


def normed(x, scale=None):
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return x if scale is None else x * np.asarray(scale)


def heads(first, count, kv_parts=2):
    """Some of the heads of x @ qkv: [row, token, head, size]."""
    rows = np.asarray(weights(kv_parts)["qkv"])[first * SIZE : (first + count) * SIZE]
    return (X @ rows.T).reshape(2, 3, count, SIZE)


def turned(x):
    return np.asarray(rotate(jnp.asarray(x), rotation(LAYER.rope, SIZE, AT)))


def test_projection_of_the_first_generations():
    queries, keys, values = projected(CONFIG, LAYER)
    np.testing.assert_allclose(queries, turned(heads(0, HEADS)) * 0.5, atol=1e-5)
    np.testing.assert_allclose(keys, turned(heads(HEADS, KV_HEADS)).swapaxes(1, 2), atol=1e-5)
    np.testing.assert_allclose(values, heads(HEADS + KV_HEADS, KV_HEADS).swapaxes(1, 2), atol=1e-5)


def test_norms_come_before_positions_and_values_have_no_scale():
    queries, keys, values = projected(CONFIG.replace(qk_norm=True, v_norm=True), LAYER)
    np.testing.assert_allclose(queries, turned(normed(heads(0, HEADS), weights()["q_norm"])) * 0.5, atol=1e-5)
    expected = turned(normed(heads(HEADS, KV_HEADS), weights()["k_norm"]))
    np.testing.assert_allclose(keys, expected.swapaxes(1, 2), atol=1e-5)
    np.testing.assert_allclose(values, normed(heads(HEADS + KV_HEADS, KV_HEADS)).swapaxes(1, 2), atol=1e-5)


def test_the_value_can_be_the_key_before_its_norm_and_position():
    config = CONFIG.replace(qk_norm=True, v_norm=True)
    _, keys, values = projected(config, replace(LAYER, k_eq_v=True), kv_parts=1)
    raw = heads(HEADS, KV_HEADS, kv_parts=1)
    np.testing.assert_allclose(keys, turned(normed(raw, weights()["k_norm"])).swapaxes(1, 2), atol=1e-5)
    np.testing.assert_allclose(values, normed(raw).swapaxes(1, 2), atol=1e-5)


def test_a_layer_that_owns_no_kv_has_queries_only():
    queries, keys, values = projected(CONFIG, replace(LAYER, kv_from=0), kv_parts=0)
    np.testing.assert_allclose(queries, turned(heads(0, HEADS, kv_parts=0)) * 0.5, atol=1e-5)
    assert keys is None
    assert values is None


# What a chunk may look at, and what stays.

RING = 3 + STEP_SLACK


def as_marks(positions):
    """Keys that say which position they belong to."""
    return jnp.broadcast_to(
        jnp.asarray(positions, jnp.float32)[:, None, :, None], (1, KV_HEADS, len(positions[0]), SIZE)
    )


@pytest.mark.parametrize("tokens", [1, STEP_SLACK, STEP_SLACK + 1, 2 * RING])
@pytest.mark.parametrize("start", [0, 5, RING, 3 * RING + 2])
@pytest.mark.parametrize("layer", [LAYER, LOCAL], ids=["global", "local"])
def test_a_chunk_sees_all_that_it_may_and_each_only_once(layer, start, tokens):
    size = RING if layer.window else 200
    held = np.maximum(np.asarray(slot_positions(jnp.array([start]), size)), 0)
    cache = LayerKV(as_marks(held), as_marks(held))
    new = as_marks([range(start, start + tokens)])
    cache, seen = remember(layer, cache, new, new, jnp.array([start]), jnp.array([tokens]))
    at, keys = np.asarray(seen.positions)[0], np.asarray(seen.keys)[0, 0, :, 0]
    there = at >= 0
    np.testing.assert_array_equal(keys[there], at[there])  # each slot holds what its position says
    first = max(0, start - (layer.window or start + 1) + 1)
    wanted = range(first, start + tokens)
    assert [int((at == position).sum()) for position in wanted] == [1] * len(wanted)
    kept = np.asarray(slot_positions(jnp.array([start + tokens]), size))
    np.testing.assert_array_equal(np.asarray(cache.keys)[0, 0, :, 0][kept[0] >= 0], kept[kept >= 0])
