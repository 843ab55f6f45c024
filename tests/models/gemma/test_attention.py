"""Attention against its definition, a query and a head at a time, in float64."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.attention import Places
from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma import attention
from langchain_gemma_jax.models.gemma.attention import VisibleKV
from langchain_gemma_jax.models.gemma.rope import rotate, rotation
from langchain_gemma_jax.models.recipes import AttentionForm, Recipe
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import LayerKV

QUICK = {"compiler_options": {"xla_backend_optimization_level": 0}}
attend = jax.jit(attention.attend, static_argnums=(3, 4, 5), **QUICK)
project = jax.jit(attention.project, static_argnums=(2, 3, 4), **QUICK)
write, gather = jax.jit(kv_cache.write, **QUICK), jax.jit(kv_cache.gather, **QUICK)

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
    layer, table = replace(LAYER, head_dim=16), jnp.arange(1, 3)[None]
    places = Places(jnp.array([2]), jnp.array([3]), jnp.array([0]))
    queries, keys, values = (
        jnp.asarray(normal(1, *shape, seed=2)) for shape in ((3, HEADS, 16), (KV_HEADS, 3, 16), (KV_HEADS, 3, 16))
    )
    old = LayerKV(*(jnp.asarray(normal(3, KV_HEADS, SLOTS, 16, seed=seed)) for seed in (3, 4)))

    def total(form, queries, keys, values, old):
        recipe = Recipe("float32", attention=form)
        found = attention.attend_in_pages(queries, places, table, old, (keys, values), CONFIG, layer, recipe)
        return jnp.sum(found[0] ** 2)

    ours, plain = (jax.grad(total, argnums=(1, 2, 3, 4))(form, queries, keys, values, old) for form in AttentionForm)
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

SLOTS = 4


def as_marks(positions):
    """Keys that say which position they belong to: ``[1, kv_head, token, size]``."""
    marks = jnp.asarray(positions, jnp.float32)[None, None, :, None]
    return jnp.broadcast_to(marks, (1, KV_HEADS, len(positions), SIZE))


@pytest.mark.parametrize("layer", [LAYER, LOCAL], ids=["global", "local"])
def test_a_chunk_sees_all_that_it_may_and_each_only_once(layer):
    """Wherever its pages lie: a table has the pages of a window and a chunk, and is gone through round and round."""
    random = np.random.default_rng(6)
    for tokens in (1, 5, 17):
        entries = 40 if layer.window is None else -(-(layer.window + tokens) // SLOTS) + 1
        table = jnp.asarray(random.permutation(np.arange(1, 60))[None, :entries], jnp.int32)
        pages = LayerKV(*(jnp.full((60, KV_HEADS, SLOTS, SIZE), np.nan),) * 2)
        for start in range(0, 130, tokens):
            real = int(random.integers(1, tokens + 1)) if start % 3 else tokens  # the rest is written again
            for count in {real, tokens}:
                at, new = jnp.array([start]), as_marks(range(start, start + tokens))
                pages = write(pages, table, new, new, at, jnp.array([count]))
                end = start + count
                keys, _, positions = (np.asarray(each) for each in gather(pages, table, at + count))
                wanted = range(max(0, start - (layer.window or end) + 1), end)
                there = np.isin(positions[0], wanted)
                np.testing.assert_array_equal(keys[0, 0, :, 0][there], positions[0][there])
                assert [int((positions[0] == each).sum()) for each in wanted] == [1] * len(wanted)
                assert positions.max() == end - 1
