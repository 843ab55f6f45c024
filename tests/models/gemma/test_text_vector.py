"""Vectors of texts against those that transformers computed: ``tests/goldens/make_embedder.py`` wrote them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from langchain_gemma_jax.models.loading.place import place
from tests.parity.architectures import EMBEDDERS, WINDOW
from tests.parity.made_up import tensor
from tests.parity.tiny import FLOAT32
from tests.tiny_embedder import tiny_embedder

both = pytest.mark.parametrize("name", [*EMBEDDERS])
SEEN = {"embeddinggemma": WINDOW // 2 + 1, "embeddinggemma-2": 4 + 1}  # by local layers: to one side, and itself


@cache
def golden(name):
    with np.load(Path(__file__).parents[2] / "goldens" / f"{name}.npz") as found:
        return {key: found[key] for key in found.files}


def write(folder, name, seed):
    """Write the model of a seed, in the layout of Sentence Transformers."""
    raw, dense, offset = EMBEDDERS[name]
    tiny_embedder(folder, dense=dense)
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "sentence_bert_config.json").unlink()
    shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(name)["tensors"])).items()}
    stored = {key: tensor(key, shape, name, seed, norm_offset=offset) for key, shape in shapes.items()}
    save_file(stored, folder / "model.safetensors")
    for inner, shape in dense.items():
        weight = tensor(f"{inner}/linear.weight", shape, name, seed, norm_offset=offset)
        save_file({"linear.weight": weight}, folder / inner / "model.safetensors")


@pytest.mark.long
@both
def test_vectors_are_those_of_transformers_for_ten_models(name, tmp_path):
    program, found = jax.jit(text_vectors, static_argnums=(1, 2)), golden(name)
    rows = zip(found["tokens"], found["lengths"], found["vectors"], strict=True)
    for seed, (tokens, lengths, theirs) in enumerate(rows):
        write(tmp_path, name, seed)
        config, source, naming = open_folder(tmp_path)
        with source:
            params = place(source, naming, config, "float32", FLOAT32.layout, jax.local_devices()[0])
        assert {layer.window for layer in config.layers} == {SEEN[name], None}

        def vectors(tokens, lengths=lengths, params=params, config=config):
            return np.asarray(program(params, config, FLOAT32, jnp.asarray(tokens), jnp.asarray(lengths)))

        ours = vectors(tokens)
        np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-6)
        assert (ours * theirs).sum(1).min() >= 0.99999
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-4 * theirs.std())
        # What is padding changes nothing, whatever stands there.
        noise = np.where(np.arange(tokens.shape[1])[None] < lengths[:, None], tokens, 7)
        np.testing.assert_array_equal(ours, vectors(noise))


@both
def test_a_config_that_transformers_wrote_means_the_same_as_the_published_one(name):
    written = json.loads(str(golden(name)["config"]))
    assert config_from_hf(written, "written") == config_from_hf(EMBEDDERS[name][0], "published")
