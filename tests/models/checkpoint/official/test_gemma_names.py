from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import ConfigError
from langchain_gemma_jax.models.checkpoint.official.gemma_names import GemmaNaming
from langchain_gemma_jax.models.configuration.abstract import Layout, abstract, walk


def plain(tree, prefix=""):
    out = {}
    for name, value in tree.items():
        path = f"{prefix}{name}"
        out |= plain(value, f"{path}/") if isinstance(value, dict) else {path.removesuffix("/w"): value}
    return out


@pytest.mark.parametrize("layout", [Layout(), Layout(layer_out_first=False, embed_out_first=False)])
def test_the_librarys_names_and_hugging_faces_give_the_same_parameters(
    tiny, layout, official_tree, put, put_by_hf_names
):
    tree = official_tree(tiny)

    found = put(plain(tree), GemmaNaming(), tiny, layout)

    jax.tree.map(np.testing.assert_array_equal, found, put_by_hf_names(tiny, tree, layout))


@pytest.mark.parametrize("kind", ["gemma, one KV head", "gemma2"])
def test_a_gate_with_its_inputs_first_is_turned(kind, tiny_models, official_tree, put, put_by_hf_names):
    config = tiny_models[kind]
    tree = official_tree(config, gate_out_first=False)

    found = put(plain(tree), GemmaNaming(gate_out_first=False), config)

    jax.tree.map(np.testing.assert_array_equal, found, put_by_hf_names(config, tree))


def test_every_array_of_a_tree_is_named_once(tiny, official_tree):
    names = [part.name for path, _ in walk(abstract(tiny)) for part in GemmaNaming()(tiny, path)]
    unused_kv = {
        f"layer_{index}/attn/{name}"
        for index, layer in enumerate(tiny.layers)
        if not layer.owns_kv
        for name in ("kv_einsum", "key_norm/scale")
    }

    assert len(names) == len(set(names))
    assert set(names) == plain(official_tree(tiny)).keys() - unused_kv


def test_what_the_library_has_no_name_for_is_an_error(gemma3):
    with pytest.raises(ConfigError, match=r"no place for head.*gemma3"):
        GemmaNaming()(gemma3, ("head",))
