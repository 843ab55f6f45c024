"""Keys and values in eight bits, against the definition of a Hadamard matrix and of rounding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.model_config import SCALE_BYTES
from langchain_gemma_jax.models.seams.kv_rounding import numbers_of, rounded, turned
from tests.kernels.made_up_attention import hadamard

SIZES = (1, 2, 5, 8, 16, 24, 80, 96, 128, 256, 512)  # of heads


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
def test_a_head_is_multiplied_by_its_matrix_block_by_block_and_comes_back(size):
    x = normal(3, 2, size)
    wanted = x @ hadamard(size)
    found = jax.jit(turned)(x)
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    np.testing.assert_allclose(jax.jit(turned)(found), x, atol=4e-6)
    y = normal(3, 2, size, seed=1)
    np.testing.assert_allclose(jnp.sum(found * turned(y), -1), np.sum(x * y, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_numbers_are_a_255th_of_the_largest_apart(size):
    x = normal(40, size) * np.exp(normal(40, 1, seed=2) * 5)
    stored = jax.jit(rounded)(x)
    assert (stored.shape, stored.dtype) == ((40, size + SCALE_BYTES), jnp.int8)
    plain, found = np.asarray(turned(x)), np.asarray(numbers_of(stored, "float32"))
    step = np.abs(plain).max(-1, keepdims=True) / 127
    assert (np.abs(found - plain) <= 0.501 * step).all()
    assert np.abs(np.asarray(stored)[:, :-SCALE_BYTES]).max(-1).min() == 127, "the largest number has the largest code"


def test_turning_keeps_what_one_large_number_would_have_drowned():
    """As a few channels of keys are: the error is many times that of numbers that are alike, if they are not turned."""
    x = normal(500, 256)
    x[:, 7] *= 100
    plainly = np.abs(x).max(-1, keepdims=True) / 127
    without = np.round(x / plainly) * plainly
    found = np.asarray(turned(numbers_of(rounded(x), "float32")))
    error = [np.sqrt(np.mean((each - x) ** 2)) for each in (found, without)]
    assert error[0] < 0.35 * error[1]


def test_what_is_no_number_stays_none_and_nothing_stays_nothing():
    x = normal(4, 32)
    x[0], x[1, 3], x[2, 5] = 0, np.nan, np.inf
    found = np.asarray(numbers_of(jax.jit(rounded)(x), "float32"))
    assert not found[0].any()
    assert np.isnan(found[1]).any()
    assert not np.isfinite(found[2]).all()
    assert np.isfinite(found[3]).all()
