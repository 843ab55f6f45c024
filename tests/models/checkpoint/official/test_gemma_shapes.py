from __future__ import annotations

import dataclasses

import pytest

from langchain_gemma_jax.errors import ConfigError, TensorMismatchError
from langchain_gemma_jax.models.checkpoint.official.gemma_names import GemmaNaming
from langchain_gemma_jax.models.checkpoint.official.gemma_shapes import (
    check_all_used,
    describe,
    find_config,
    find_naming,
)
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import StoredArray
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.catalog import known

GATE_IN_FIRST = {"gemma-2b", "gemma-7b", "gemma-2-2b"}


def published(name, **changes):
    """The arrays of a published model as Google's library names them, without any bytes."""
    config = known()[name].replace(**changes)
    naming = GemmaNaming(gate_out_first=name not in GATE_IN_FIRST)
    parts = [part for path, _ in walk(abstract(config)) for part in naming(config, path)]
    return {part.name: StoredArray(part.name, part.shape, "bfloat16") for part in parts}


@pytest.mark.parametrize("name", known())
def test_every_published_size_is_known_by_its_shapes(name):
    config = find_config(published(name), known(), f"/models/{name}-it")

    assert config == known()[name]
    assert find_naming(config, published(name)).gate_out_first == (name not in GATE_IN_FIRST)


def test_one_size_under_two_names_is_the_first_unless_its_folder_says_otherwise():
    tower = published("functiongemma-270m")

    assert find_config(tower, known(), "/models/mine") == known()["gemma-3-270m"]
    assert find_config(tower, known(), "/models/FunctionGemma-270M-it/1") == known()["functiongemma-270m"]


def test_the_vocabulary_is_the_trees_own():
    config = find_config(published("gemma-2-2b", vocab_size=256128), known(), "")

    assert config == known()["gemma-2-2b"].replace(vocab_size=256128)


def test_the_per_layer_inputs_have_the_same_vocabulary():
    ple = dataclasses.replace(known()["gemma-4-e2b"].per_layer_input, vocab_size=1000)
    tower = published("gemma-4-e2b", vocab_size=1000, per_layer_input=ple)

    assert find_config(tower, known(), "").per_layer_input == ple


def test_the_unused_kv_of_layers_that_share_it_is_no_difference():
    tower = published("gemma-4-e2b")
    tower["layer_34/attn/kv_einsum"] = StoredArray("", (2, 1, 1536, 512), "bfloat16")
    tower["layer_34/attn/key_norm/scale"] = StoredArray("", (512,), "bfloat16")

    assert find_config(tower, known(), "") == known()["gemma-4-e2b"]


@pytest.mark.parametrize("change", ["a layer more", "a layer less", "another shape", "an array more"])
def test_what_differs_from_every_published_size_is_not_taken_for_one(change):
    tower = published("gemma-3-1b")
    if change == "a layer more":
        tower |= {name.replace("layer_0", "layer_26"): leaf for name, leaf in tower.items() if "layer_0/" in name}
    elif change == "a layer less":
        tower = {name: leaf for name, leaf in tower.items() if "layer_25/" not in name}
    elif change == "another shape":
        tower["layer_7/mlp/linear"] = StoredArray("", (6900, 1152), "bfloat16")
    else:
        tower["layer_3/attn/bias"] = StoredArray("", (1152,), "bfloat16")

    with pytest.raises(ConfigError, match=r"^/models/mine: this model is a Gemma 3 of \d+ layers, width 1152, 4 heads"):
        find_config(tower, known(), "/models/mine")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gemma-7b", "a Gemma 1 of 28 layers, width 3072, 16 heads of 256, feed-forward 24576, vocabulary 256000"),
        ("gemma-2-9b", "a Gemma 2 of 42 layers, width 3584, 16 heads of 256, feed-forward 14336, vocabulary 256000"),
        (
            "gemma-4-26b-a4b",
            "a Gemma 4 of 30 layers, width 2816, 16 heads of 256, feed-forward 2112, vocabulary 262144",
        ),
    ],
)
def test_a_model_is_described_by_its_shapes(name, text):
    assert describe(published(name)) == text


@pytest.mark.parametrize("shape", [(), (7,)])
def test_even_shapes_of_no_model_are_described(shape):
    tower = {
        "embedder/input_embedding": StoredArray("", shape, "float32"),
        "layer_0/attn/q_einsum": StoredArray("", (1,), "float32"),
    }

    with pytest.raises(ConfigError, match="a Gemma 1 of 1 layers, width 0, 0 heads of 0"):
        find_config(tower, known(), "")


def test_a_configuration_has_to_use_every_array():
    tower = published("gemma-3-1b")
    config = known()["gemma-3-1b"]
    check_all_used(config, GemmaNaming(), tower, "/models/mine")

    with pytest.raises(TensorMismatchError, match=r"found 52 more, such as layer_0/attn/_key_norm/scale \[256\]"):
        check_all_used(config.replace(qk_norm=False), GemmaNaming(), tower, "/models/mine")


@pytest.mark.parametrize(("kind", "out_first"), [("gemma, one KV head", False), ("gemma3", True)])
def test_a_square_gate_lies_as_its_generation_has_it(kind, out_first, tiny_models):
    config = square(tiny_models[kind])
    tower = {"layer_0/mlp/gating_einsum": StoredArray("", (2, config.width, config.width), "float32")}

    assert find_naming(config, tower) == GemmaNaming(gate_out_first=out_first)


def test_a_square_gate_of_gemma_2_cannot_be_told(tiny_models):
    tower = {"layer_0/mlp/gating_einsum": StoredArray("", (2, 12, 12), "float32")}

    with pytest.raises(ConfigError, match=r"feed-forward is as wide as the model \(12\)"):
        find_naming(square(tiny_models["gemma2"]), tower)


def square(config):
    return config.replace(layers=tuple(dataclasses.replace(layer, ffw_width=config.width) for layer in config.layers))
