"""A folder that transformers' code is to run is refused before its weights are read, where it cannot be."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import UnsafeCheckpointError
from langchain_gemma_jax.models.loading.load import load
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_pickled_weights_are_never_opened(tmp_path):
    save_model(tmp_path, "llama 3")
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(b"cposix\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(UnsafeCheckpointError, match=r"pickles only, pytorch_model\.bin for one"):
        load(f"torchax:{tmp_path}")
