import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe
from training.optimizer import kinds, optimizer, orthogonal_momentum


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24)])
def test_steps_are_orthogonal_and_as_large_as_adams(shape, dtype):
    made = orthogonal_momentum(dtype)
    gradient = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    step, _ = made.update(gradient, made.init(gradient))
    assert float(jnp.sqrt(jnp.mean(step**2))) == pytest.approx(0.2, rel=0.2)
    values = np.linalg.svd(np.asarray(step))[1]
    assert values.max() / values.min() < 2.5


def test_matrices_of_layers_are_told_from_the_rest(tiny):
    told = kinds(random_params(tiny, Recipe("float32")))
    assert told["embed"] == told["final_norm"] == "other"
    assert {name for name, kind in told["layers"][0].items() if kind == "matrix"} == {
        *("qkv", "attn_out", "gate_up", "down")
    }


def test_the_rate_rises_stays_and_falls_to_nothing(tiny, lax_dtypes):
    params = random_params(tiny, Recipe("float32"))
    made = optimizer(0.1, steps=12, warmup=4, decay=4)
    state, sizes, update = made.init(params), [], jax.jit(made.update)
    for _ in range(13):
        updates, state = update(params, state, params)
        sizes.append(float(jnp.abs(updates["embed"]).mean()))
    assert sizes[0] == 0
    assert sizes[2] == pytest.approx(sizes[4] / 2, rel=0.1)
    assert sizes[8] == pytest.approx(sizes[5], rel=0.1)
    assert sizes[12] == 0
