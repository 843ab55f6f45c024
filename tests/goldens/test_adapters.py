"""Adapters beside our weights against vectors that PEFT computed on transformers: ``make_adapters.py`` wrote them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.models.adapters.adapter import Base
from langchain_gemma_jax.models.adapters.peft_folder import read_folder
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.seams.adapters import AdaptedParams, unfolded
from tests.goldens.adapter_cases import ADAPTED, SEED, adapter_tensor
from tests.parity.architectures import MULTIMODAL, SHRUNK
from tests.parity.made_up import NEW_TOKENS, tensor
from tests.parity.tiny import AS_USERS, FLOAT32, Runner

ALL = {**SHRUNK, **MULTIMODAL}


@cache
def golden(case):
    with np.load(Path(__file__).parent / "adapters" / f"{case}.npz") as found:
        return {key: found[key] for key in found.files}


def write_files(case, folder):
    """The model in one folder, and its adapter in another."""
    found, name = golden(case), ADAPTED[case][0]
    offset = 0.0 if "gemma4" in ALL[name]["model_type"] else 1.0
    (folder / "model").mkdir()
    (folder / "adapter").mkdir()
    shapes = json.loads(str(found["tensors"]))
    save_file(
        {key: tensor(key, tuple(shape), name, SEED, norm_offset=offset) for key, shape in shapes.items()},
        folder / "model" / "model.safetensors",
    )
    (folder / "model" / "config.json").write_text(json.dumps(ALL[name]))
    shapes = json.loads(str(found["adapter"]))
    save_file(
        {key: adapter_tensor(key, tuple(shape), case) for key, shape in shapes.items()},
        folder / "adapter" / "adapter_model.safetensors",
    )
    (folder / "adapter" / "adapter_config.json").write_text(str(found["config"]))


@pytest.mark.long
@pytest.mark.parametrize("case", ADAPTED)
def test_scores_and_greedy_tokens_are_those_of_peft(case, tmp_path):
    write_files(case, tmp_path)
    found = golden(case)
    config, source, naming = open_folder(tmp_path / "model")
    with source:
        params = place(source, naming, config, "float32", FLOAT32.layout, jax.local_devices()[0])
    layers = Gemma(config).adapted_layers
    adapter = read_folder(tmp_path / "adapter", Base("tiny", layers))
    # In the second slot, behind another adapter: of zeros.
    one = adapter.slot(layers, 16)
    stacks = jax.tree.map(lambda array: np.stack([np.zeros_like(array), array]), one)
    rows = zip(found["tokens"], found["lengths"], strict=True)
    texts = [row[: prompt + NEW_TOKENS] for row, prompt in rows]
    for slots, wanted in (([2, 2], "logits"), ([1, 0], "plain")):
        whole = unfolded(AdaptedParams(params, stacks, np.array(slots, np.int32)))
        scores = Runner(config, whole, lengths=(168,), program=AS_USERS).read(texts)
        for row, ours in enumerate(scores):
            tolerance = 2e-4 * float(found["spread"])
            np.testing.assert_allclose(ours[found["positions"][row]], found[wanted][row], rtol=0, atol=tolerance)
            if wanted == "logits":
                prompt, length = found["lengths"][row], len(texts[row])
                np.testing.assert_array_equal(ours[prompt - 1 : length - 1].argmax(-1), texts[row][prompt:])
    assert np.abs(found["logits"] - found["plain"]).max() > 0.1 * float(found["spread"]), "the adapter does something"
