"""The parts of which every encoder is made, against numpy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.seams import media_encoder
from langchain_gemma_jax.models.seams.media_encoder import (
    LIMITS,
    attend,
    clipped,
    layer_norm,
    product,
    rms_norm,
    whole_root,
)


def normal(*shape):
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def test_products_are_clipped_before_and_after_where_there_are_limits():
    x, weight, bias = 3 * normal(5, 6), normal(4, 6), normal(4)
    np.testing.assert_allclose(product(x, jnp.asarray(weight), bias), x @ weight.T + bias, rtol=1e-4, atol=1e-5)
    bounds = dict(zip(LIMITS, map(np.float32, (-1, 2, -3, 1)), strict=True))
    arrays = {"q": jnp.asarray(weight)}
    np.testing.assert_allclose(clipped(x, arrays, "q"), x @ weight.T, rtol=1e-4, atol=1e-5)
    arrays |= {f"q_{name}": bound for name, bound in bounds.items()}
    np.testing.assert_allclose(clipped(x, arrays, "q"), np.clip(np.clip(x, -1, 2) @ weight.T, -3, 1), atol=1e-5)


def test_norms_are_their_definitions():
    x, scale, bias = normal(2, 3, 8), normal(8), normal(8)
    centered = x - x.mean(-1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-6) * scale
    np.testing.assert_allclose(layer_norm(x, scale, None, 1e-6), wanted, atol=1e-5)
    np.testing.assert_allclose(layer_norm(x, scale, bias, 1e-6), wanted + bias, atol=1e-5)
    wanted = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(rms_norm(x, None, 1e-6), wanted, atol=1e-5)
    np.testing.assert_allclose(rms_norm(x, scale, 1e-6), wanted * scale, atol=1e-5)


@pytest.mark.parametrize("at_once", [1024, 4])  # queries; by fours there are three blocks
def test_each_token_attends_to_each_real_one(monkeypatch, at_once):
    monkeypatch.setattr(media_encoder, "QUERIES_AT_ONCE", at_once)
    queries, keys, values = (normal(12, 2, 4) + number for number in range(3))
    real = np.arange(12) < 9
    scores = np.einsum("qhd,khd->hqk", queries, keys) * 0.5
    shares = np.exp(scores - scores.max(-1, keepdims=True)) * real
    wanted = np.einsum("hqk,khd->qhd", shares / shares.sum(-1, keepdims=True), values).reshape(12, 8)
    arrays = map(jnp.asarray, (queries, keys, values))
    np.testing.assert_allclose(attend(*arrays, 0.5, jnp.asarray(real)), wanted, atol=1e-5)


def test_a_root_is_whole_or_none():
    assert [whole_root(number) for number in (0, 1, 2, 9, 10**12)] == [0, 1, None, 3, 10**6]
