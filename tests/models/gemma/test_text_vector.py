"""Vectors of texts against those that transformers computed: ``tests/goldens/make_embedder.py`` wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.place import place
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from tests.parity.architectures import EMBEDDER, EMBEDDER_DENSE, WINDOW
from tests.parity.made_up import tensor
from tests.parity.tiny import FLOAT32
from tests.tiny_embedder import tiny_embedder

NAME = "embeddinggemma"


@pytest.fixture(scope="module")
def golden():
    with np.load(Path(__file__).parents[2] / "goldens" / f"{NAME}.npz") as found:
        return {key: found[key] for key in found.files}


def write(folder, golden, seed):
    """Write the model of a seed, in the layout of Sentence Transformers."""
    tiny_embedder(folder, dense=EMBEDDER_DENSE)
    (folder / "config.json").write_text(json.dumps(EMBEDDER))
    (folder / "sentence_bert_config.json").unlink()
    shapes = {name: tuple(shape) for name, shape in json.loads(str(golden["tensors"])).items()}
    save_file(
        {name: tensor(name, shape, NAME, seed, norm_offset=1.0) for name, shape in shapes.items()},
        folder / "model.safetensors",
    )
    for place_, shape in EMBEDDER_DENSE.items():
        weight = tensor(f"{place_}/linear.weight", shape, NAME, seed, norm_offset=1.0)
        save_file({"linear.weight": weight}, folder / place_ / "model.safetensors")


def test_vectors_are_those_of_transformers_for_ten_models(golden, tmp_path):
    program = jax.jit(text_vectors, static_argnums=(1, 2))
    for seed, (tokens, lengths, theirs) in enumerate(
        zip(golden["tokens"], golden["lengths"], golden["vectors"], strict=True)
    ):
        write(tmp_path, golden, seed)
        config, source, naming = open_folder(tmp_path)
        with source:
            params = place(source, naming, config, "float32", FLOAT32.layout, jax.local_devices()[0])
        assert {layer.window for layer in config.layers} == {WINDOW // 2 + 1, None}
        config = config.replace(embedding=config.embedding)
        ours = np.asarray(program(params, config, FLOAT32, jnp.asarray(tokens), jnp.asarray(lengths)))
        np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-6)
        assert (ours * theirs).sum(1).min() >= 0.99999
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-4 * theirs.std())
        # What is padding changes nothing, whatever stands there.
        noise = np.where(np.arange(128)[None] < lengths[:, None], tokens, 7)
        again = np.asarray(program(params, config, FLOAT32, jnp.asarray(noise), jnp.asarray(lengths)))
        np.testing.assert_array_equal(ours, again)
    # Each token counts, also one whose only neighbours are behind it, across all of a text.
    moved = tokens.copy()
    moved[:, 1] = (moved[:, 1] + 1) % 100 + 3
    moved_vectors = np.asarray(program(params, config, FLOAT32, jnp.asarray(moved), jnp.asarray(lengths)))
    assert (moved_vectors * ours).sum(1).max() < 0.9999
