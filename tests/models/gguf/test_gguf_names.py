"""Tensors of GGUF files by the names of llama.cpp."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.seams.block_forms import DEFAULT
from tests.models.gguf.make import file_of


def test_a_tensor_that_nobody_knows_or_that_is_missing(tmp_path):
    path = file_of(tmp_path / "x.gguf", change=lambda w: w.add_tensor("blk.0.attn_q.bias", np.zeros(32, np.float32)))
    with pytest.raises(TensorMismatchError, match=r"also 'blk.0.attn_q.bias'"):
        open_gguf(path)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("blk.0.attn_q.scale", np.ones(2, np.float32), r"'blk.0.attn_q.scale' to be \[1\] in float32"),
        ("blk.0.attn_q.scale", np.ones(1, np.float16), r"found \[1\] in float16"),
        ("output.scale", np.ones(1, np.float32), "also 'output.scale'"),  # of a head that this model has not
    ],
)
def test_a_factor_is_one_number_of_a_matrix_that_is_there(tmp_path, name, value, error):
    path = file_of(tmp_path / "x.gguf", kind="NVFP4", change=lambda writer: writer.add_tensor(name, value))
    with pytest.raises(TensorMismatchError, match=error):
        storage_of(path)


def storage_of(path):
    checkpoint = open_gguf(path).checkpoint
    with checkpoint.tensors:
        return checkpoint.storage("float32", DEFAULT)


def test_images_beside_a_text_model_are_passed_over(tmp_path):
    path = file_of(
        tmp_path / "x.gguf", change=lambda w: w.add_tensor("v.blk.0.attn_q.weight", np.zeros(32, np.float32))
    )
    open_gguf(path).checkpoint.tensors.close()
