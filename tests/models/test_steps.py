"""The two programs: right, compiled once a shape, and in place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.catalog import published
from langchain_gemma_jax.models.forward import forward, logits
from langchain_gemma_jax.models.kv_cache import allocate
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.steps import greedy_step, read

RECIPE = Recipe("float32")
CONFIG = published("gemma-3-270m").replace(vocab_size=256, width=32, layers=published("gemma-3-270m").layers[4:6])


def i32(*values):
    return jnp.array(values, jnp.int32)


@pytest.fixture(scope="module")
def params():
    return random_params(CONFIG, RECIPE)


def test_reading_then_stepping_is_one_long_read(params):
    prompt = [2, 9, 44, 17, 5]
    cache = allocate(CONFIG, 1, 64, "float32")
    scores, cache = read(params, CONFIG, RECIPE, i32([*prompt, 0, 0, 0]), i32(0), i32(5), cache)
    token, start, said = jnp.argmax(scores, -1).astype(jnp.int32), i32(5), []
    for _ in range(6):
        said.append(int(token[0]))
        token, start, cache = greedy_step(params, CONFIG, RECIPE, token, start, cache)
    everything = i32(prompt + said)
    hidden, _ = forward(params, CONFIG, RECIPE, everything, i32(0), i32(11), allocate(CONFIG, 1, 64, "float32"))
    best = np.asarray(jnp.argmax(logits(params, CONFIG, RECIPE, hidden), -1))[0]
    assert best[4:].tolist() == [*said, int(token[0])]
    assert int(start[0]) == 11


def test_a_step_compiles_once_and_works_in_place(params):
    cache = allocate(CONFIG, 1, 64, "float32")
    token, start = i32(3), i32(0)
    greedy_step.clear_cache()
    for _ in range(4):
        before = cache
        where = before[0].keys.unsafe_buffer_pointer()
        token, start, cache = greedy_step(params, CONFIG, RECIPE, token, start, cache)
        assert before[0].keys.is_deleted(), "the cache was copied instead of donated"
        assert cache[0].keys.unsafe_buffer_pointer() == where
    assert greedy_step._cache_size() == 1


def test_a_step_moves_nothing_between_host_and_device(params):
    cache = allocate(CONFIG, 1, 64, "float32")
    token, start, cache = greedy_step(params, CONFIG, RECIPE, i32(3), i32(0), cache)
    with jax.transfer_guard("disallow"):
        for _ in range(3):
            token, start, cache = greedy_step(params, CONFIG, RECIPE, token, start, cache)
    assert int(start[0]) == 4


def test_with_weights_bound_to_a_device_it_still_compiles_once(params):
    device = jax.local_devices()[0]
    bound = jax.device_put(params, device)
    cache = allocate(CONFIG, 1, 64, "float32", device)
    read.clear_cache()
    for start in (0, 4, 8):
        _, cache = read(bound, CONFIG, RECIPE, i32(5, 6, 7, 8)[None], i32(start), i32(4), cache)
    assert read._cache_size() == 1
