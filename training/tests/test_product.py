import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.product import product

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(2, 24, 16)), jnp.float32)
WEIGHT = jnp.asarray(RNG.normal(size=(40, 16)), jnp.float32)


def with_gradients(dtype):
    def total(x, weight):
        return jnp.sum(jnp.sin(product(x, weight, jnp.dtype(dtype)) / 8))

    return product(X, WEIGHT, jnp.dtype(dtype)), *jax.jit(jax.grad(total, (0, 1)))(X, WEIGHT)


def test_in_float32_it_is_the_plain_product():
    np.testing.assert_allclose(product(X, WEIGHT, jnp.dtype("float32")), X @ WEIGHT.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_in_bfloat16_it_and_its_gradients_are_nearly_those_of_float32(which):
    low, exact = with_gradients("bfloat16")[which], with_gradients("float32")[which]
    assert low.dtype == jnp.float32
    assert low.shape == exact.shape
    np.testing.assert_allclose(low, exact, atol=0.02 * float(jnp.abs(exact).max()))
    assert not np.array_equal(low, exact)
