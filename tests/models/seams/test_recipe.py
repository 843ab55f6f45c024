"""A recipe says how a model's arrays are stored, and in which dtype its cache is."""

from __future__ import annotations

import jax
import pytest

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Plan, Recipe
from langchain_gemma_jax.models.seams.weights import Packed
from tests.models.int8 import Int8, Int8Storage
from tests.parity.tiny import small

INT8 = Recipe("float32", storage=Int8Storage())


TURNED = Plan(out_first=False)


@pytest.mark.long
def test_a_dense_recipe_has_plain_arrays_of_the_shapes_that_abstract_says():
    config, recipe = small("gemma-4-e2b"), Recipe("bfloat16", Plan(False), TURNED)
    assert recipe.abstract(config) == abstract(config, "bfloat16", recipe.layout)
    assert not any(isinstance(leaf, Packed) for leaf in jax.tree.leaves(random_params(config, recipe)))


def test_only_matrices_are_packed():
    for path, spec in walk(abstract(small("gemma-4-26b-a4b"))):
        found = INT8.abstract(small("gemma-4-26b-a4b"))
        for step in path:
            found = found[step]
        assert isinstance(found, Int8) == (len(spec.shape) > 1)


def test_the_cache_has_a_dtype_of_its_own():
    assert Recipe("float32").kv_dtype == "float32"
    assert Recipe("float32", cache_dtype="bfloat16").kv_dtype == "bfloat16"
    assert INT8.kv_dtype == "float32"


def test_global_layers_alone_are_rounded_and_the_others_stay_what_they_are():
    layout = small("gemma-4-e2b").cache_layout
    recipe = Recipe("bfloat16", cache_dtype="int8")
    kept = recipe.kept(layout)
    assert recipe.kv_dtype == "bfloat16"
    assert Recipe("bfloat16", cache_dtype="float32").kept(layout) == Recipe("bfloat16").kept(layout) == layout
    found = [layer and (layer.stored_dtype("bfloat16"), layer.width - layer.head_dim) for layer in kept]
    wanted = [layer and (("bfloat16", 0) if layer.window else ("int8", 4)) for layer in layout]
    assert found == wanted
    assert {each for each in found if each} == {("bfloat16", 0), ("int8", 4)}
