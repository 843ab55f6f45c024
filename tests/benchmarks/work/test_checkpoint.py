from __future__ import annotations

import jax
import numpy as np
import pytest

from benchmarks.work import checkpoint
from benchmarks.work.checkpoint import CONFIG, ensure_checkpoints, write_checkpoints
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.recipes import Recipe

TINY = {
    **CONFIG,
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "head_dim": 8,
    "layer_types": ["sliding_attention", "full_attention"],
}


def load(folder, dtype):
    config, tensors, naming = open_folder(folder / dtype)
    with tensors:
        return place(tensors, naming, config, dtype, Recipe(dtype).layout, jax.devices()[0])


def test_the_configuration_is_that_of_the_published_model():
    assert config_from_hf(CONFIG, "the benchmark") == published("gemma-3-270m")


def test_both_dtypes_hold_the_same_numbers(tmp_path):
    write_checkpoints(tmp_path, TINY)
    halves, wholes = load(tmp_path, "bfloat16"), load(tmp_path, "float32")
    jax.tree.map(lambda half, whole: np.testing.assert_array_equal(np.float32(half), whole), halves, wholes)
    assert str(halves["embed"].dtype) == "bfloat16"


def test_norms_are_neither_zero_nor_one_as_stored(tmp_path):
    write_checkpoints(tmp_path, TINY)
    factor = np.asarray(load(tmp_path, "float32")["layers"][0]["attn_norm"])
    assert 0.05 < np.std(factor) < 0.5
    assert abs(np.mean(factor) - 1) < 0.2


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(checkpoint, "CONFIG", TINY)


@pytest.mark.usefixtures("small")
def test_checkpoints_are_made_once(tmp_path):
    folder = ensure_checkpoints(tmp_path)
    made = (folder / "float32" / "model.safetensors").stat()
    assert ensure_checkpoints(tmp_path) == folder
    assert (folder / "float32" / "model.safetensors").stat().st_ino == made.st_ino


@pytest.mark.usefixtures("small")
def test_checkpoints_are_made_again_when_their_makers_changed(tmp_path):
    folder = ensure_checkpoints(tmp_path)
    (folder / "float32.gguf").write_bytes(b"of the old weights")
    (folder / "made_from").write_text("another version")
    ensure_checkpoints(tmp_path)
    assert not (folder / "float32.gguf").exists()
    assert (folder / "float32" / "config.json").exists()


@pytest.mark.usefixtures("small")
def test_an_interrupted_making_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ensure_checkpoints(tmp_path)
    assert list(tmp_path.iterdir()) == []
