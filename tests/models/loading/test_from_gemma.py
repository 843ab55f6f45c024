from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from langchain_gemma_jax.errors import (
    ConfigError,
    InputError,
    TensorMismatchError,
    TokenizerError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.loading.from_gemma import from_gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.models.loading.tiny_folder import write_tokenizer

SAFE = Recipe(dtype="float32")


class Gemma3_Tiny:  # noqa: N801  as the library names its classes
    """In the place of one of the library's modules: the tests' tiny Gemma 3."""

    config = SimpleNamespace(
        num_embed=30,
        embed_dim=12,
        hidden_dim=20,
        num_heads=4,
        num_kv_heads=2,
        head_dim=6,
        final_logit_softcap=None,
        attn_logits_soft_cap=None,
        use_post_attn_norm=True,
        use_post_ffw_norm=True,
        use_qk_norm=True,
        attention_types=[SimpleNamespace(name=name) for name in (*("LOCAL_SLIDING",) * 5, "GLOBAL")],
        sliding_window_size=8,
        local_base_frequency=10_000,
        global_base_frequency=1_000_000,
        local_scale_factor=1.0,
        global_scale_factor=8.0,
        query_pre_attn_scalar=lambda: 6**-0.5,
    )


@pytest.fixture
def tree(gemma3, official_tree):
    return official_tree(gemma3)


@pytest.fixture
def tokenizer_folder(tmp_path):
    write_tokenizer(tmp_path)
    return tmp_path


def numpy_of(model):
    return jax.tree.map(np.asarray, model.params)


def test_a_model_of_the_library_becomes_one_of_this_package(tree, gemma3, put_by_hf_names):
    with from_gemma(Gemma3_Tiny(), {"params": tree}, recipe=SAFE) as model:
        jax.tree.map(np.testing.assert_array_equal, numpy_of(model), put_by_hf_names(gemma3, tree))

        smallest = known()["gemma-3-1b"]
        assert model.config == gemma3.replace(max_context=smallest.max_context, eos_ids=smallest.eos_ids)
        assert model.name == "Gemma3_Tiny"
        assert model.recipe == SAFE


def test_every_kind_of_model(tiny, official_tree, put_by_hf_names):
    tree = official_tree(tiny)

    with from_gemma(object(), tree, recipe=SAFE, config=tiny) as model:
        jax.tree.map(np.testing.assert_array_equal, numpy_of(model), put_by_hf_names(tiny, tree))
        assert model.config is tiny


def test_the_dtype_is_the_trees_own_unless_another_is_asked_for(gemma3, official_tree):
    tree = official_tree(gemma3, dtype=ml_dtypes.bfloat16)

    with from_gemma(Gemma3_Tiny(), tree) as model:
        assert model.params["embed"].dtype == jnp.bfloat16
        assert model.recipe.dtype == "bfloat16"
    with from_gemma(Gemma3_Tiny(), tree, dtype="float32") as model:
        assert model.params["embed"].dtype == jnp.float32
        assert model.recipe.dtype == "float32"


def test_the_dtype_is_the_recipes_if_there_is_one(tree):
    with from_gemma(Gemma3_Tiny(), tree, recipe=Recipe("bfloat16")) as model:
        assert model.params["embed"].dtype == jnp.bfloat16
    with pytest.raises(InputError, match=r"dtype='float32' was asked for, with a recipe for bfloat16"):
        from_gemma(Gemma3_Tiny(), tree, dtype="float32", recipe=Recipe("bfloat16"))


@pytest.mark.long
def test_a_float16_tree_becomes_float32_unless_float16_is_asked_for(gemma3, official_tree):
    tree = official_tree(gemma3, dtype=np.float16)

    with from_gemma(Gemma3_Tiny(), tree) as model:
        assert model.params["embed"].dtype == jnp.float32
    with from_gemma(Gemma3_Tiny(), tree, dtype="float16") as model:
        assert model.params["embed"].dtype == jnp.float16


def test_the_callers_tree_and_the_model_have_nothing_in_common(tree):
    on_device = jax.tree.map(jnp.array, tree)  # a copy: what jnp.asarray makes may be the tree's own memory
    with from_gemma(Gemma3_Tiny(), tree, recipe=SAFE) as model:
        before = np.array(model.params["embed"])
        tree["embedder"]["input_embedding"][:] = 0
        np.testing.assert_array_equal(model.params["embed"], before)
    with from_gemma(Gemma3_Tiny(), on_device, recipe=SAFE) as model:
        assert not model.closed
    assert model.closed
    np.testing.assert_array_equal(on_device["embedder"]["input_embedding"], before)


def test_a_tokenizer_by_folder_or_as_it_is(tree, tokenizer_folder):
    mine = load_tokenizer(tokenizer_folder)

    with from_gemma(Gemma3_Tiny(), tree, recipe=SAFE, tokenizer=str(tokenizer_folder)) as model:
        assert model.tokenizer.encode_text("Zürich") == mine.encode_text("Zürich")
    with from_gemma(Gemma3_Tiny(), tree, recipe=SAFE, tokenizer=mine) as model:
        assert model.tokenizer is mine


def test_without_a_tokenizer_only_text_is_an_error(tree):
    with from_gemma(Gemma3_Tiny(), tree, recipe=SAFE) as model:
        assert model.params["embed"].shape == (30, 12)
        with pytest.raises(TokenizerError, match=r"from_gemma\(Gemma3_Tiny.*expected a tokenizer.*Pass tokenizer="):
            model.tokenizer.encode_text("Zürich")
        with pytest.raises(TokenizerError, match="Pass tokenizer="):
            _ = model.tokenizer.vocab_size


def test_a_tokenizer_that_is_not_there(tree, tmp_path):
    with pytest.raises(TokenizerError, match="neither"):
        from_gemma(Gemma3_Tiny(), tree, tokenizer=tmp_path)


def test_a_dtype_that_is_not_possible(tree):
    with pytest.raises(InputError, match="expected one of float32, bfloat16, float16 or None, found 'int8'"):
        from_gemma(Gemma3_Tiny(), tree, dtype="int8")


def test_the_tree_of_another_model(gemma3, official_tree):
    other = gemma3.replace(layers=gemma3.layers[:3])
    with pytest.raises(TensorMismatchError, match=r"the tree given with Gemma3_Tiny: .*layer_3/pre_attention_norm"):
        from_gemma(Gemma3_Tiny(), official_tree(other), recipe=SAFE)

    more = gemma3.replace(layers=gemma3.layers * 2)
    with pytest.raises(TensorMismatchError, match=r"of 6 layers, and no more, found 66 more"):
        from_gemma(Gemma3_Tiny(), official_tree(more), recipe=SAFE)


def test_what_is_no_model(tree):
    with pytest.raises(ConfigError, match=r"gm\.nn\.Gemma3_1B"):
        from_gemma(object(), tree)


def test_adapters_have_to_be_merged_first(tree):
    tree["layer_0"]["attn"]["q_einsum"]["lora"] = {"a": np.ones((12, 2), np.float32), "b": np.ones((2, 6), np.float32)}

    with pytest.raises(UnsupportedModelError, match=r"LoRA adapters \(layer_0/attn/q_einsum/lora/a\).*Merge"):
        from_gemma(Gemma3_Tiny(), tree)
