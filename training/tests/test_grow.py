import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from training import configs
from training.forward import hidden_states
from training.grow import grown
from training.train import Settings, initial


@pytest.fixture
def sizes(monkeypatch, lax_dtypes):
    for name, layers, width, heads, ffw in (("one", 4, 16, 4, 24), ("two", 6, 32, 8, 48)):
        made = configs._sizes(layers, width, heads, heads // 2, 8, ffw, period=2)
        monkeypatch.setitem(configs.HF_CONFIGS, name, made | {"sliding_window": 8})
    return configs.model_config("one"), configs.model_config("two")


@pytest.fixture
def params():
    return initial(Settings("one", 1, 1, 1, 1, 1))[0]


def scores(params, config):
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 4096, (1, 40)), jnp.int32)
    hidden, *_ = hidden_states(params, config, tokens, jnp.ones_like(tokens), jnp.dtype("float32"))
    return hidden @ params["embed"].T


def test_a_grown_model_foretells_what_the_small_one_does(sizes, params):
    small, large = sizes
    larger = grown(params, small, large, np.random.default_rng(0))
    specs = {path: spec.shape for path, spec in walk(abstract(large))}
    shapes = {path: np.shape(_at(larger, path)) for path in specs}
    assert shapes == specs
    np.testing.assert_allclose(scores(larger, large), scores(params, small), rtol=1e-3, atol=1e-3)


def test_copies_of_a_weight_differ_so_that_they_can_learn_different_things(sizes, params):
    small, large = sizes
    larger = grown(params, small, large, np.random.default_rng(0))
    for layer in larger["layers"]:
        for name, array in layer.items():
            if array.ndim == 2:
                left, right = np.split(np.asarray(array), 2, axis=1)
                assert np.abs(left - right).max() > 0.01, name


def test_every_array_of_a_grown_model_learns(sizes, params):
    small, large = sizes
    larger = jax.tree.map(jnp.asarray, grown(params, small, large, np.random.default_rng(0)))
    gradients = jax.grad(lambda p: jnp.sum(jnp.sin(scores(p, large))))(larger)
    added = [index for index, layer in enumerate(larger["layers"]) if not np.asarray(layer["post_ffw_norm"]).any()]
    assert len(added) == 2
    for index, layer in enumerate(gradients["layers"]):
        learning = layer if index not in added else {"post_attn_norm": layer["post_attn_norm"]}  # the others follow it
        assert all(np.abs(np.asarray(each)).max() > 0 for each in learning.values())


def test_only_what_is_twice_as_wide_can_grow(sizes, params):
    small, _ = sizes
    with pytest.raises(ValueError, match="twice as wide"):
        grown(params, small, small, np.random.default_rng(0))


def _at(tree, path):
    for key in path:
        tree = tree[key]
    return tree
