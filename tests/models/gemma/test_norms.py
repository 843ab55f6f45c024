from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.gemma.norms import rms_norm, soft_cap

X = np.random.default_rng(0).normal(3, 2, (2, 3, 8)).astype(np.float32)


def by_hand(x, eps):
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps)


@pytest.mark.parametrize("eps", [1e-6, 0.5])
def test_rms_norm_divides_by_the_root_of_the_mean_square(eps):
    np.testing.assert_allclose(rms_norm(jnp.asarray(X), None, eps), by_hand(X, eps), rtol=1e-6)


def test_the_scale_is_the_factor_itself():
    scale = np.arange(8, dtype=np.float32)
    found = rms_norm(jnp.asarray(X), jnp.asarray(scale), 1e-6)
    np.testing.assert_allclose(found, by_hand(X, 1e-6) * scale, rtol=1e-6)


def test_zeros_stay_zeros():
    np.testing.assert_array_equal(rms_norm(jnp.zeros((2, 4)), None, 1e-6), np.zeros((2, 4)))


def test_a_soft_cap_bounds_and_keeps_what_is_small():
    x = jnp.array([-1e9, -50.0, -0.01, 0.0, 0.01, 50.0, 1e9])
    found = soft_cap(x, 50.0)
    np.testing.assert_allclose(found, 50 * np.tanh(np.asarray(x) / 50), rtol=1e-5)
    np.testing.assert_allclose(found[jnp.array([0, -1])], [-50, 50])
    np.testing.assert_allclose(found[2:5], x[2:5], rtol=1e-6)


def test_no_cap_changes_nothing():
    x = jnp.array([-1e9, 1.5])
    assert soft_cap(x, None) is x
