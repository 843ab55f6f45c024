"""Our forward pass against vectors that transformers computed: ``make.py`` wrote them.

The whole way is taken: tensors under Hugging Face's names in a safetensors file, a ``config.json`` as the published
model has it, the loader, and the program. ``make parity`` does more of the same, live.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.loading.place import place
from tests.parity.architectures import MULTIMODAL, SHRUNK
from tests.parity.made_up import NEW_TOKENS, prompts, tensor
from tests.parity.tiny import AS_USERS, FLOAT32, Runner

ALL = {**SHRUNK, **MULTIMODAL}
LENGTH = 168  # every row is padded to it

AT_ONCE = {"gemma-2b", "gemma-2-2b", "gemma-3-270m", "gemma-4-31b"}  # one of each generation
every = pytest.mark.parametrize(
    "name", [name if name in AT_ONCE else pytest.param(name, marks=pytest.mark.long) for name in ALL]
)


@cache
def golden(name):
    with np.load(Path(__file__).with_name(f"{name}.npz")) as found:
        return {key: found[key] for key in found.files}


def write_checkpoint(name, folder):
    offset = 0.0 if "gemma4" in ALL[name]["model_type"] else 1.0
    shapes = json.loads(str(golden(name)["tensors"]))
    save_file(
        {key: tensor(key, tuple(shape), name, 0, norm_offset=offset) for key, shape in shapes.items()},
        folder / "model.safetensors",
    )
    (folder / "config.json").write_text(json.dumps(ALL[name]))


def logits(name, folder):
    """The logits of each row's real tokens."""
    found = golden(name)
    config, source, naming = open_folder(folder)
    with source:
        params = place(source, naming, config, "float32", FLOAT32.layout, jax.local_devices()[0])
    # Models that differ in their special tokens only can share a program.
    runner = Runner(config.replace(eos_ids=(1,)), params, lengths=(LENGTH,), program=AS_USERS)
    rows = zip(found["tokens"], found["lengths"], strict=True)
    return runner.read([row[: prompt + NEW_TOKENS] for row, prompt in rows])


@pytest.mark.long
@every
def test_logits_and_greedy_tokens_are_those_of_transformers(name, tmp_path):
    write_checkpoint(name, tmp_path)
    found = golden(name)
    for row, ours in enumerate(logits(name, tmp_path)):
        theirs, tolerance = found["logits"][row], 2e-4 * float(found["spread"])
        np.testing.assert_allclose(ours[found["positions"][row]], theirs, rtol=0, atol=tolerance)
        prompt = found["lengths"][row]
        chosen = ours[prompt - 1 : prompt - 1 + NEW_TOKENS].argmax(-1)
        np.testing.assert_array_equal(chosen, found["tokens"][row, prompt : prompt + NEW_TOKENS])


@every
def test_the_prompts_are_those_of_the_seed(name):
    found = golden(name)
    for row, prompt in enumerate(prompts(name, 0)):
        assert found["tokens"][row, : found["lengths"][row]].tolist() == prompt


@every
def test_a_config_that_transformers_wrote_means_the_same_as_the_published_one(name):
    written = json.loads(str(golden(name)["config"]))
    assert config_from_hf(written, "written") == config_from_hf(ALL[name], "published")
