"""Folders in the layout of Sentence Transformers: what is read of them, and what is refused."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax import errors, load_model
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.model_config import EmbeddingConfig
from tests.tiny_embedder import CONTEXT, DENSE, PROMPTS, tiny_embedder


def changed(folder, name, **changes):
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def of_modules(folder, *kinds):
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([each for each in listed if each["type"].endswith(kinds)]))


def test_a_folder_says_what_becomes_of_the_tokens(tmp_path):
    folder = tiny_embedder(tmp_path / "model")
    config, source, _ = open_folder(folder)
    source.close()
    assert config.embedding == EmbeddingConfig(tuple(DENSE.values()), normed=True, prompts=tuple(PROMPTS.items()))
    assert (config.embedding.width(config.width), config.max_context) == (16, CONTEXT)
    with load_model(folder, dtype="float32") as model:
        stored = np.asarray(model.params["dense_0"])
        assert {stored.shape, stored.T.shape} == {(24, 16), (16, 24)}
    changed(folder, "1_Pooling/config.json", pooling_mode="mean")  # as newer ones say it
    of_modules(folder, "Transformer", "Pooling")
    config, source, _ = open_folder(folder)
    source.close()
    assert config.embedding == EmbeddingConfig((), normed=False, prompts=tuple(PROMPTS.items()))


def test_the_files_in_its_folders_are_watched_while_it_is_read(tmp_path):
    folder = tiny_embedder(tmp_path / "model")
    files = Unchanged.now(folder)
    assert {"modules.json", "1_Pooling/config.json", "3_Dense/model.safetensors"} <= set(files.stamps)
    os.utime(folder / "2_Dense" / "model.safetensors", (1, 1))
    with pytest.raises(errors.CorruptCheckpointError, match="written to or replaced"):
        files.check()


def _dense(folder, **changes):
    changed(folder, "2_Dense/config.json", **changes)


def _modules(folder, number, **changes):
    listed = json.loads((folder / "modules.json").read_text())
    listed[number] |= changes
    (folder / "modules.json").write_text(json.dumps(listed))


WRONG = {
    "no modules": (lambda folder: (folder / "modules.json").unlink(), errors.CheckpointNotFoundError, "modules.json"),
    "modules that are no list": (
        lambda folder: (folder / "modules.json").write_text("{}"),
        errors.CorruptCheckpointError,
        "a JSON list of objects",
    ),
    "no pooling": (lambda f: of_modules(f, "Transformer", "Dense"), errors.UnsupportedModelError, "expected Transf"),
    "another module": (lambda f: _modules(f, 2, type="x.models.CNN"), errors.UnsupportedModelError, "CNN"),
    "a folder outside": (lambda f: _modules(f, 2, path="../2_Dense"), errors.UnsafeCheckpointError, "of this folder"),
    "the Gemma elsewhere": (lambda f: _modules(f, 0, path="0_T"), errors.UnsupportedModelError, "in the folder itself"),
    "another pooling": (
        lambda f: changed(f, "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_max_tokens=True),
        errors.UnsupportedModelError,
        "the mean of all tokens",
    ),
    "prompts left out": (
        lambda f: changed(f, "1_Pooling/config.json", include_prompt=False),
        errors.UnsupportedModelError,
        "include_prompt=true",
    ),
    "a bias": (lambda f: _dense(f, bias=True), errors.UnsupportedModelError, "no biases"),
    "an activation": (
        lambda f: _dense(f, activation_function="torch.nn.modules.activation.Tanh"),
        errors.UnsupportedModelError,
        "follow each other directly",
    ),
    "matrices that do not fit": (lambda f: _dense(f, in_features=8), errors.ConfigError, "in_features=16, found 8"),
    "a matrix of another shape": (
        lambda f: save_file({"linear.weight": np.zeros((2, 2), np.float32)}, f / "2_Dense" / "model.safetensors"),
        errors.TensorMismatchError,
        "2_Dense/linear.weight",
    ),
    "a matrix that is not there": (
        lambda f: (f / "3_Dense" / "model.safetensors").unlink(),
        errors.CheckpointNotFoundError,
        "3_Dense",
    ),
    "one more tensor": (
        lambda f: save_file(
            {"linear.weight": np.zeros((24, 16), np.float32), "linear.bias": np.zeros(24, np.float32)},
            f / "2_Dense" / "model.safetensors",
        ),
        errors.TensorMismatchError,
        "2_Dense/linear.bias",
    ),
    "prompts that are no texts": (
        lambda f: changed(f, "config_sentence_transformers.json", prompts={"query": 1}),
        errors.ConfigError,
        "texts by their names",
    ),
    "capitals made small": (
        lambda f: changed(f, "sentence_bert_config.json", do_lower_case=True),
        errors.UnsupportedModelError,
        "capital letters",
    ),
}


def test_what_is_not_read_as_it_is_meant_is_refused(tmp_path):
    whole = tiny_embedder(tmp_path / "whole")
    for name, (damage, kind, said) in WRONG.items():
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        damage(folder)
        with pytest.raises(kind, match=said):
            load_model(folder, dtype="float32")


def test_a_matrix_behind_a_link_out_of_the_folder_is_refused(tmp_path):
    folder = tiny_embedder(tmp_path / "model")
    weights = folder / "2_Dense" / "model.safetensors"
    weights.rename(tmp_path / "elsewhere.safetensors")
    weights.symlink_to(tmp_path / "elsewhere.safetensors")
    with pytest.raises(errors.UnsafeCheckpointError):
        load_model(folder)
