import jax
import jax.numpy as jnp
import numpy as np
import pytest

import training.forward
from langchain_gemma_jax.models.gemma.forward import forward
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import allocate
from training.data.pointers import LABELS, LOOKS, VALUE_BEFORE
from training.forward import hidden_states, mean_loss
from training.passed_on import passed_on_loss

TOKENS = 29


@pytest.fixture
def tiny(tiny_with_both_kinds_of_layers):
    return tiny_with_both_kinds_of_layers


@pytest.fixture
def params(tiny):
    return random_params(tiny, Recipe("float32"), seed=3)


def shipped(params, config, ids):
    """The forward pass that users run, one conversation at a time."""
    cache = allocate(config.cache_layout, 1, 64, "float32")
    zero, count = jnp.zeros(1, jnp.int32), jnp.full(1, ids.shape[0], jnp.int32)
    read = jax.jit(forward, static_argnums=(1, 2))
    return read(params, config, Recipe("float32"), ids[None], zero, count, cache)[0][0]


def test_it_is_the_forward_pass_that_is_shipped_for_each_conversation_of_a_row(tiny, params):
    ids = np.random.default_rng(0).integers(0, 4096, TOKENS)
    segments = np.asarray([[1] * 17 + [2] * 12])
    read = jax.jit(hidden_states, static_argnums=(1, 4))
    row = read(params, tiny, ids[None], segments, jnp.dtype("float32"))[0][0]
    np.testing.assert_allclose(row[:17], shipped(params, tiny, ids[:17]), atol=2e-5)
    np.testing.assert_allclose(row[17:], shipped(params, tiny, ids[17:]), atol=2e-5)


def test_the_loss_counts_weights_and_the_figures_count_the_models_own_tokens(tiny, params):
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 4096, (2, TOKENS + 1))
    weights = rng.choice([0.0, 0.1, 1.0], (2, TOKENS)).astype(np.float32)
    batch = {
        "tokens": ids[:, :-1],
        "targets": ids[:, 1:],
        "segments": np.ones((2, TOKENS), np.int32),
        "weights": weights,
    }
    loss, figures = jax.jit(mean_loss, static_argnums=(1, 3))(params, tiny, batch, jnp.dtype("float32"))
    hidden = np.stack([shipped(params, tiny, row) for row in ids[:, :-1]])
    scores = hidden @ np.asarray(params["embed"]).T
    odds = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    losses = -np.take_along_axis(odds, ids[:, 1:, None], -1)[..., 0]
    assert float(loss) == pytest.approx((losses * weights).sum() / weights.sum(), rel=1e-4)
    assert float(figures["loss"]) == pytest.approx(losses[weights == 1].mean(), rel=1e-4)
    right = scores.argmax(-1) == ids[:, 1:]
    assert float(figures["accuracy"]) == pytest.approx(right[weights == 1].mean())


def test_only_what_is_scored_counts(tiny, params):
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 4096, (2, TOKENS + 1))
    places = np.sort(rng.permuted(np.tile(np.arange(TOKENS), (2, 1)), axis=1)[:, :11], axis=1)
    weights = rng.choice([0.1, 1.0], (2, TOKENS)).astype(np.float32)
    batch = {"tokens": ids[:, :-1], "targets": ids[:, 1:], "segments": np.ones((2, TOKENS), np.int32)}
    of = jax.jit(mean_loss, static_argnums=(1, 3))
    some, told = of(params, tiny, batch | {"weights": weights, "scored": places}, jnp.dtype("float32"))
    others = np.zeros_like(weights)
    np.put_along_axis(others, places, np.take_along_axis(weights, places, 1), 1)
    same, as_told = of(params, tiny, batch | {"weights": others}, jnp.dtype("float32"))
    assert float(some) == pytest.approx(float(same), rel=1e-5)
    told, as_told = ({name: float(value) for name, value in each.items()} for each in (told, as_told))
    assert told == pytest.approx(as_told, rel=1e-5)


def test_what_is_passed_on_counts_little_and_is_looked_for_after_its_layers(tiny, params):
    ids = np.random.default_rng(2).integers(3, 4096, (1, TOKENS + 1))
    looks = np.zeros((1, LOOKS, 2, 4), np.int32)
    looks[0, LABELS, 0] = looks[0, VALUE_BEFORE, 1] = 9, 4, 5, 0
    batch = {"tokens": ids[:, :-1], "targets": ids[:, 1:], "segments": np.ones((1, TOKENS), np.int32)}
    batch |= {"weights": np.ones((1, TOKENS), np.float32), "looks": looks}
    precision = jnp.dtype("float32")
    plain = mean_loss(params, tiny, batch, precision)[0]
    states = hidden_states(params, tiny, batch["tokens"], batch["segments"], precision)[2]
    for passing in ((0, 1), (1, 0)):
        loss, told = mean_loss(params, tiny, batch, precision, look_weight=0.5, passing=passing)
        missed, shares = passed_on_loss(states, passing, params["embed"], batch)
        assert float(loss - plain) == pytest.approx(0.5 * 0.05 * float(missed), rel=1e-2)
        assert missed > 1
        np.testing.assert_allclose(told["passed"], shares, rtol=1e-5)


def test_long_rows_have_the_gradient_that_they_would_have_without_recomputing(tiny, params, monkeypatch):
    ids = np.arange(2 * (TOKENS + 1)).reshape(2, -1)
    batch = {"tokens": ids[:, :-1], "targets": ids[:, 1:], "segments": np.ones((2, TOKENS), np.int32)}
    batch |= {"weights": np.ones((2, TOKENS), np.float32)}
    gradients = []
    for longest in (TOKENS, TOKENS - 1):
        monkeypatch.setattr(training.forward, "_LONG", longest)
        gradient = jax.jit(jax.grad(lambda p: mean_loss(p, tiny, batch, jnp.dtype("float32"))[0]))
        gradients.append(jax.tree.leaves(gradient(params)))
    for plain, recomputed in zip(*gradients, strict=True):
        np.testing.assert_allclose(plain, recomputed, rtol=1e-3, atol=1e-5)
