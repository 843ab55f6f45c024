"""A Gemma whose files are open: its dtype, and among how many devices it may be divided."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import abstract
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.opened_gemma import check_divisible
from langchain_gemma_jax.models.recipes import choose_recipe
from tests.models.loading.tiny_folder import CONFIG, tensors


@pytest.mark.parametrize(
    ("stored", "default"), [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")]
)
def test_the_dtype_is_the_checkpoints_but_for_float16(folder, stored, default):
    save_file(tensors(getattr(ml_dtypes, stored, stored)), folder / "model.safetensors")
    with load(folder) as model:
        assert model.params["embed"].dtype == default
        assert model.recipe == choose_recipe(default)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_dtype_is_the_callers(folder, dtype):
    save_file(tensors(np.float16), folder / "model.safetensors")
    with load(folder, dtype=dtype) as model:
        assert model.params["embed"].dtype == dtype
        assert model.params["final_norm"].dtype == "float32"
        assert model.recipe == choose_recipe(dtype)


def test_matrices_whose_packed_numbers_change_their_format_within_a_head_are_not_divided():
    config = config_from_hf(CONFIG, "x")
    whole = abstract(config, "float32")
    check_divisible(whole)
    for name in ("qkv", "gate_up"):
        layers = [dict(layer) for layer in whole["layers"]]
        layers[1][name] = replace(layers[1][name], sections=())
        with pytest.raises(UnsupportedModelError, match="within heads or within a gate"):
            check_divisible(whole | {"layers": layers})
