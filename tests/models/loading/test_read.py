"""Weights of files that changed while they were read are freed, and nobody gets them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.loading.read import read_unchanged


def test_weights_are_given_or_freed(tmp_path):
    config = tmp_path / "config.json"
    config.write_text("{}")
    array = jax.device_put(np.ones(3, np.float32))
    assert read_unchanged(lambda: {"embed": array, "layers": []}, Unchanged.now(tmp_path))["embed"] is array

    def read():
        config.write_text('{"another": 1}')
        return {"embed": array, "layers": []}

    with pytest.raises(CheckpointError):
        read_unchanged(read, Unchanged.now(tmp_path))
    assert array.is_deleted()
