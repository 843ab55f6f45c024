"""Attention with sinks and any mask is softmax with one more score, and without them what a Gemma's is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma.attention import VisibleKV, attend
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.plain_attention import attend_plainly

ROWS, TOKENS, HEADS, KV_HEADS, SLOTS, DIM = 2, 3, 4, 2, 9, 6


def drawn(seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    queries = jax.random.normal(keys[0], (ROWS, TOKENS, HEADS, DIM))
    kv = [jax.random.normal(key, (ROWS, KV_HEADS, SLOTS, DIM)) for key in keys[1:3]]
    return queries, kv, jax.random.normal(keys[3], (HEADS,))


def by_hand(queries, kv, visible, sinks):
    out = np.zeros(queries.shape)
    for row, token, head in np.ndindex(ROWS, TOKENS, HEADS):
        keys, values = (np.asarray(each)[row, head // (HEADS // KV_HEADS)] for each in kv)
        scores = np.where(visible[row, token], keys @ np.asarray(queries)[row, token, head], -np.inf)
        shares = np.exp(scores)
        out[row, token, head] = shares @ values / (shares.sum() + np.exp(sinks[head]))
    return out


def test_shares_are_those_of_a_softmax_with_one_more_score():
    for seed in range(4):
        queries, kv, sinks = drawn(seed)
        visible = np.asarray(jax.random.bernoulli(jax.random.key(9 + seed), 0.6, (ROWS, TOKENS, SLOTS)))
        seen = VisibleKV(*kv, jnp.zeros((ROWS, SLOTS), jnp.int32))
        found = attend_plainly(queries, seen, jnp.asarray(visible), None, sinks)
        assert np.allclose(found, by_hand(queries, kv, visible, np.asarray(sinks)), atol=1e-5)
        none = attend_plainly(queries, seen, jnp.zeros_like(visible), None, sinks)
        assert not np.asarray(none).any(), "with nothing to see, the sink takes everything"


def test_without_sinks_it_is_a_gemmas_attention():
    for seed, cap in ((0, None), (1, 2.0)):
        queries, kv, _ = drawn(seed)
        positions, at = jnp.tile(jnp.arange(6, 6 + TOKENS), (ROWS, 1)), jnp.tile(jnp.arange(SLOTS), (ROWS, 1))
        seen = VisibleKV(*kv, at)
        config = ModelConfig("", 0, 0, HEADS, (), 0, 1.0, attention_softcap=cap)
        want = attend(queries, positions, seen, config, LayerConfig(KV_HEADS, DIM, 0, Rope(1.0)), Recipe("float32"))
        visible = at[:, None, :] <= positions[:, :, None]
        found = attend_plainly(queries, seen, visible, cap)
        assert np.allclose(found.reshape(want.shape), want, atol=1e-6)
