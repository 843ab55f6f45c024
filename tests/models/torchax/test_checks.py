"""Folders that cannot be served through torchax are refused, by name, before torch is imported."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import CheckpointNotFoundError, UnsafeCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.torchax.checks import checked_folder


def folder_of(path, config, *names):
    (path / "config.json").write_text(json.dumps(config))
    for name in names:
        (path / name).write_bytes(b"x")
    return path


def test_a_folder_of_a_decoder_is_taken(tmp_path):
    config = {"model_type": "llama", "num_hidden_layers": 2}
    assert checked_folder(folder_of(tmp_path, config, "model.safetensors")) == config


@pytest.mark.parametrize(
    ("config", "names", "error", "said"),
    [
        ({"is_encoder_decoder": True, "model_type": "t5"}, ["model.safetensors"], UnsupportedModelError, "encoder"),
        ({"quantization_config": {}}, ["model.safetensors"], UnsupportedModelError, "packed"),
        ({"text_config": {}, "model_type": "gemma3"}, ["model.safetensors"], UnsupportedModelError, "text alone"),
        ({}, ["pytorch_model.bin"], UnsafeCheckpointError, "pickles only"),
        ({}, [], CheckpointNotFoundError, "safetensors"),
        ({}, ["model.safetensors", "adapter_config.json"], UnsupportedModelError, "adapter"),
    ],
)
def test_others_are_refused(tmp_path, config, names, error, said):
    with pytest.raises(error, match=said):
        checked_folder(folder_of(tmp_path, config, *names))


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "outside").write_bytes(b"x")
    inside = tmp_path / "model"
    inside.mkdir()
    folder_of(inside, {"model_type": "llama"})
    (inside / "model.safetensors").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafeCheckpointError, match="a link to"):
        checked_folder(inside)


def test_no_folder_and_no_configuration(tmp_path):
    with pytest.raises(CheckpointNotFoundError, match="no such folder"):
        checked_folder(tmp_path / "none")
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointNotFoundError, match="configuration"):
        checked_folder(tmp_path)
