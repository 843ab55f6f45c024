"""A caller's settings are checked before a file is looked at."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.check_asked import asked_dtype, check_asked
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.recipes import Recipe

OTHER = "dtype='float32' was asked for, with a recipe for bfloat16"


@pytest.mark.parametrize(
    ("options", "recipe", "says"),
    [
        *(({"dtype": dtype}, None, f"expected one of float32, bfloat16, float16 or None, found '{dtype}'")
          for dtype in ("int8", "f32", "", "FLOAT32")),
        ({"dtype": "float32"}, Recipe("bfloat16"), OTHER),
        ({}, Recipe("float32", cache_dtype="int4"), "expected one of float32.* int8 or None, found .int4."),
        ({"cache_dtype": "int4"}, None, "cache_dtype: expected one of int8 or None, found 'int4'"),
        ({"cache_dtype": "int8"}, Recipe(cache_dtype="float32"), "with a recipe that has 'float32'. Leave one of them"),
        ({"devices": 0}, None, "devices"),
        ({"activations": "int4"}, None, "activations: expected one of float32, int8 or None, found 'int4'"),
        ({"trust_remote_code": True}, None, "only a model .torchax:.* can have code of its own"),
    ],
)  # fmt: skip
def test_what_is_wrong_for_every_file_is_refused(options, recipe, says):
    with pytest.raises(InputError, match=says):
        check_asked("gone", HowToLoad(**options), recipe=recipe)


def test_no_file_is_looked_at_before(tmp_path):
    with pytest.raises(InputError, match=OTHER):
        load(tmp_path / "gone", dtype="float32", recipe=Recipe("bfloat16"))


def test_a_dtype_is_asked_for_as_an_option_or_in_a_recipe(folder):
    assert asked_dtype(None, None) is None
    assert asked_dtype("float16", None) == asked_dtype(None, Recipe("float16")) == "float16"
    with load(folder, recipe=Recipe("float32", cache_dtype="bfloat16")) as model:
        assert (model.recipe.kv_dtype, model.params["embed"].dtype) == ("bfloat16", "float32")
    for how in ({"cache_dtype": "int8"}, {"recipe": Recipe("bfloat16", cache_dtype="int8")}):
        with load(folder, **how) as model:
            assert model.recipe.rounds_cache
            assert model.recipe.kv_dtype == model.recipe.dtype, "of local layers"
