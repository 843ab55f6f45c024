"""Weights without a file have a model's shapes, keep numbers at an ordinary size, and are those of their seed."""

from __future__ import annotations

import jax
import numpy as np

from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import leaves
from tests.parity.tiny import small

RECIPE = Recipe("float32")


def test_matrices_are_scaled_by_their_inputs_and_norms_are_one():
    config = small("gemma-4-e2b")
    params = random_params(config, RECIPE)
    assert jax.tree.structure(params) == jax.tree.structure(jax.tree.map(lambda _: 0, RECIPE.abstract(config)))
    layer = params["layers"][0]
    assert (np.asarray(layer["attn_norm"]) == 1).all()
    assert 0.9 < np.std(np.asarray(params["embed"])) * config.width**0.5 < 1.1


def test_a_seed_gives_the_same_weights_and_another_one_others():
    config = small("gemma-3-270m")
    one, again, other = (list(leaves(random_params(config, RECIPE, seed))) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert not all((a == b).all() for a, b in zip(one, other, strict=True))
