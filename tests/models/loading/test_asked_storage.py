"""How matrices are stored and multiplied: as files have them, and as a caller asks for."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest

from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables import fingerprint
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.loading import asked_storage
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.packed import choose_forms
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForm, BlockForms
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write

KERNEL = BlockForms(BlockForm.KERNEL, BlockForm.KERNEL)


def shape_of(model):
    return Shape(model.architecture, model.recipe, 320, 64, PageCounts(1, 1))


@pytest.mark.parametrize(
    ("forms", "asked", "found"),
    [
        (KERNEL, None, "int8"),
        (DEFAULT, None, "float32"),
        (KERNEL, "float32", "float32"),
        (DEFAULT, "int8", "int8"),
    ],
)
def test_they_are_rounded_where_kernels_are_faster_so_or_where_it_is_asked_for(monkeypatch, forms, asked, found):
    monkeypatch.setattr(choose_forms, "_chosen", {"cpu": forms})
    names = set()
    with load("sprout-s", weights="int8", activations=asked, dtype="float32", progress=False) as model:
        storage = model.recipe.storage
        assert storage.forms.activations == found
        assert {w.forms.activations for w in jax.tree.leaves(model.params, is_leaf=is_blocks) if is_blocks(w)} == {
            found
        }
        by_kernel = model.recipe.attention is AttentionForm.KERNEL
        assert by_kernel or (forms, found) != (KERNEL, "int8"), "other bits in long chunks"
        names.add(
            fingerprint.family(Shape(model.architecture, model.recipe, 320, 64, PageCounts(1, 1)), model.placement)
        )
    with load("sprout-s", recipe=model.recipe, activations="float32", progress=False) as again:
        assert again.recipe.storage.forms.activations == "float32"
        names.add(
            fingerprint.family(Shape(again.architecture, again.recipe, 320, 64, PageCounts(1, 1)), again.placement)
        )
    assert len(names) == (1 if found == "float32" else 2), "one name for two programs, or the other way round"


def is_blocks(weight: object) -> bool:
    return isinstance(weight, BlockMatrix)


def test_what_cannot_be_is_said():
    with pytest.raises(InputError, match="activations: expected one of float32, int8 or None, found 'int4'"):
        load("sprout-s", activations="int4", progress=False)
    with pytest.raises(
        InputError, match=r"activations='int8' is for packed weights, and these are dense.*weights=\"int8\""
    ):
        load("sprout-s", activations="int8", progress=False)
    with load("sprout-s", activations="float32", progress=False) as model:
        assert not any(map(is_blocks, jax.tree.leaves(model.params, is_leaf=is_blocks)))


def test_a_recipe_of_the_callers_is_as_it_was_asked_for(monkeypatch):
    monkeypatch.setattr(choose_forms, "_chosen", {"cpu": KERNEL})
    for recipe, unasked in (
        (Recipe("float32"), "float32"),
        (Recipe("float32", attention=AttentionForm.KERNEL), "float32"),
        (Recipe("float32", attention=AttentionForm.KERNEL, between=BetweenForm.KERNEL), "int8"),
    ):
        for asked, found in ((None, unasked), ("int8", "int8")):
            with load("sprout-s", weights="int8", activations=asked, recipe=recipe, progress=False) as model:
                assert model.recipe.storage.forms.activations == found
                assert replace(model.recipe, storage=recipe.storage) == recipe


def test_nothing_is_measured_for_a_file_whose_matrices_are_all_packed(tmp_path, monkeypatch):
    path, dense = tmp_path / "x.gguf", tmp_path / "y.gguf"
    write(path, CONFIGS["gemma"], of_one_kind("Q8_0"), tokenizer=small_tokenizer(), more=lambda _: None)
    write(dense, CONFIGS["gemma"], of_one_kind("F32"), tokenizer=small_tokenizer(), more=lambda _: None)
    asked = []

    def measured(dtype, **how):
        asked.append(dtype)
        return Recipe(dtype)

    monkeypatch.setattr(asked_storage, "choose_recipe", measured)
    for forms, file, count in ((KERNEL, path, 0), (DEFAULT, path, 1), (KERNEL, dense, 1)):
        asked.clear()
        monkeypatch.setattr(choose_forms, "_chosen", {"cpu": forms})
        with load(file, dtype="float32", progress=False) as model:
            assert len(asked) == count
            assert count or model.recipe.attention is AttentionForm.KERNEL
