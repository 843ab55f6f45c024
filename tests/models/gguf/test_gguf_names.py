"""Tensors of GGUF files by the names of llama.cpp."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.gguf.opening import open_gguf
from tests.models.gguf.make import file_of


def test_a_tensor_that_nobody_knows_or_that_is_missing(tmp_path):
    path = file_of(tmp_path / "x.gguf", change=lambda w: w.add_tensor("blk.0.attn_q.bias", np.zeros(32, np.float32)))
    with pytest.raises(TensorMismatchError, match=r"also 'blk.0.attn_q.bias'"):
        open_gguf(path)


def test_images_beside_a_text_model_are_passed_over(tmp_path):
    path = file_of(
        tmp_path / "x.gguf", change=lambda w: w.add_tensor("v.blk.0.attn_q.weight", np.zeros(32, np.float32))
    )
    open_gguf(path).checkpoint.tensors.close()
