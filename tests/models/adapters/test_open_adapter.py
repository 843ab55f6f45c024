"""Adapters in files: PEFT's and llama.cpp's say the same, and whatever is not applied, or does not fit, is refused."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from langchain_gemma_jax.errors import (
    CheckpointError,
    ConfigError,
    CorruptCheckpointError,
    GemmaJaxError,
    TensorMismatchError,
    UnknownModelError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.adapters.adapter import RANKS, Base
from langchain_gemma_jax.models.adapters.open_adapter import find_adapter, open_adapter
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from tests.engine.tiny import CONFIGS
from tests.models.adapters.files import ATTENTION, gguf_file, module, peft_folder, random_pairs

CONFIG = CONFIGS["local and global"]
BASE = Base("tiny/base", Gemma(CONFIG).adapted_layers)


def opened(source, base):
    return open_adapter(find_adapter(source), base)


def test_peft_and_gguf_files_of_one_adapter_are_one_adapter(tmp_path):
    for seed, (rank, targets) in enumerate([(1, ATTENTION), (4, ("q_proj",)), (9, ("down_proj", "up_proj"))]):
        pairs = random_pairs(CONFIG, seed, rank, targets)
        folder = peft_folder(tmp_path / f"peft{seed}", pairs, lora_alpha=2 * rank)
        alike = opened(gguf_file(tmp_path / f"{seed}.gguf", pairs, 2.0 * rank), BASE)
        found = opened(folder, BASE)
        assert found.digest == alike.digest
        assert (found.name, found.rank, len(found.matrices)) == (folder.name, rank, len(pairs))
        place = 1, targets[0]
        np.testing.assert_allclose(found.matrices[place].up, 2 * pairs[place][1])
        without = opened(gguf_file(tmp_path / f"{seed}n.gguf", pairs, None), BASE)  # no alpha: a scale of 1
        np.testing.assert_array_equal(without.matrices[place].up, pairs[place][1])
        assert without.digest != found.digest
    # A folder that has one GGUF file is that file.
    (tmp_path / "in").mkdir()
    gguf_file(tmp_path / "in" / "my-lora.gguf", pairs, 18.0)
    assert opened(tmp_path / "in", BASE).digest == found.digest


def test_scales_follow_patterns_and_rank_stabilization(tmp_path):
    pairs = random_pairs(CONFIG, 3, 4)
    pairs |= {place: each for place, each in random_pairs(CONFIG, 4, 2).items() if place[1] == "o_proj"}
    patterns = {
        "rank_pattern": {"o_proj": 2},
        "alpha_pattern": {r"^model\.layers\.1\.mlp\.up_proj$": 5, "q_proj": 3.0},
    }
    for stabilized in (False, True):
        folder = peft_folder(tmp_path / str(stabilized), pairs, lora_alpha=8, use_rslora=stabilized, **patterns)
        found = opened(folder, BASE)
        for (layer, name), (down, up) in pairs.items():
            alpha = 5 if (layer, name) == (1, "up_proj") else 3 if name == "q_proj" else 8
            rank = down.shape[0]
            scale = np.float32(alpha / (rank**0.5 if stabilized else rank))
            np.testing.assert_array_equal(found.matrices[layer, name].up, up * scale)


def test_projections_that_no_model_reads_are_left_out(tmp_path):
    config = CONFIGS["shared KV"]
    pairs = random_pairs(config, 5, 2, ATTENTION)
    idle = {(2, name): (np.ones((2, config.width), np.float32), np.ones((16, 2), np.float32)) for name in ("k_proj",)}
    adapter = opened(peft_folder(tmp_path, pairs | idle), Base("shared", Gemma(config).adapted_layers))
    assert adapter.matrices.keys() == pairs.keys()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "IA3"}, "peft_type"),
        ({"use_dora": True}, "DoRA"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"bias": "all"}, "bias"),
        ({"lora_bias": True}, "lora_bias"),
        ({"layer_replication": [[0, 2], [0, 2]]}, "layer_replication"),
        ({"trainable_token_indices": [1]}, "trainable_token_indices"),
        ({"target_parameters": ["mlp.experts.gate_up_proj"]}, "experts"),
        ({"alora_invocation_tokens": [5]}, "alora"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa"),
        ({"a_field_of_tomorrow": 3}, "a_field_of_tomorrow"),
        ({"arrow_config": {"top_k": 2}}, "arrow_config"),
        ({"alpha_pattern": {"(a+)+b": 2}}, "pattern"),
    ],
)
def test_what_is_not_applied_is_refused_by_name(tmp_path, changes, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        opened(peft_folder(tmp_path, random_pairs(CONFIG, 0), **changes), BASE)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"r": 0}, {"r": "4"}, {"r": 5}, {"lora_alpha": None}, {"lora_alpha": True}, {"use_rslora": "yes"},
        {"rank_pattern": 4}, {"alpha_pattern": {"q_proj": "2"}}, {"rank_pattern": {"q_proj": 8}},
    ],
)  # fmt: skip
def test_a_malformed_configuration_is_refused(tmp_path, changes):
    with pytest.raises(ConfigError):
        opened(peft_folder(tmp_path, random_pairs(CONFIG, 0), **changes), BASE)


def rewritten(folder, change):
    path = folder / "adapter_model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    return folder


def test_tensors_that_do_not_fit_are_refused_and_name_both(tmp_path):
    q = f"base_model.model.{module(1, 'q_proj')}"

    def folder(name):
        return peft_folder(tmp_path / name, random_pairs(CONFIG, 0))

    def refused(name, change, kind, words):
        with pytest.raises(kind, match=words):
            opened(rewritten(folder(name), change), BASE)

    refused("half", lambda t: t.pop(f"{q}.lora_B.weight"), TensorMismatchError, "lora_B")
    refused(
        "ranks", lambda t: t.update({f"{q}.lora_B.weight": np.ones((32, 3), np.float32)}), TensorMismatchError, "rank"
    )
    refused("nan", lambda t: t[f"{q}.lora_A.weight"].fill(np.nan), CorruptCheckpointError, "finite")
    refused("none", lambda t: t.clear() or t.update(), CorruptCheckpointError, "none")
    for extra in ("lora_magnitude_vector.weight", "lora_embedding_A", "base_layer.bias"):
        name = f"{q}.{extra}"
        refused(extra, lambda t, name=name: t.update({name: np.ones(4, np.float32)}), UnsupportedModelError, extra)
    for other in (
        "base_model.model.lm_head.lora_A.weight",
        "base_model.model.model.vision_tower.encoder.layers.0.self_attn.q_proj.lora_A.weight",
    ):
        refused(
            other.split(".")[2] + "x",
            lambda t, other=other: t.update({other: np.ones((4, 16), np.float32)}),
            UnsupportedModelError,
            "lm_head|vision_tower",
        )
    for name, config in CONFIGS.items():
        wrong = Base("another/model", Gemma(config.replace(width=24)).adapted_layers)
        with pytest.raises(TensorMismatchError, match="tiny/base") as caught:
            opened(peft_folder(tmp_path / f"wrong {name}", random_pairs(config, 0)), wrong)
        assert "another/model" in str(caught.value)
    deep = random_pairs(CONFIG, 0)
    deep[7, "q_proj"] = deep[0, "q_proj"]
    with pytest.raises(TensorMismatchError, match="2 layers"):
        opened(peft_folder(tmp_path / "deep", deep), BASE)
    large = random_pairs(CONFIG, 0, RANKS[-1] + 1, ("q_proj",))
    with pytest.raises(UnsupportedModelError, match="rank"):
        opened(peft_folder(tmp_path / "large", large), BASE)


def test_places_without_an_adapter_are_refused(tmp_path):
    for nowhere in (tmp_path / "nowhere", str(tmp_path / "nowhere"), "no id", "a/b/c", "./org/name"):
        with pytest.raises(UnknownModelError, match="organization/name"):
            opened(nowhere, BASE)
    with pytest.raises(CheckpointError, match=r"adapter_config\.json"):
        opened(tmp_path, BASE)
    folder = peft_folder(tmp_path / "pickle", random_pairs(CONFIG, 0))
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(UnsafeCheckpointError, match="pickle"):
        opened(folder, BASE)
    with pytest.raises(ConfigError, match="whole model"):
        opened(gguf_file(tmp_path / "model.gguf", random_pairs(CONFIG, 0), 4.0, type="model"), BASE)
    with pytest.raises(ConfigError, match="control"):
        opened(gguf_file(tmp_path / "c.gguf", random_pairs(CONFIG, 0), 4.0, adapter_type="control"), BASE)


def test_damaged_files_give_typed_errors(tmp_path):
    rng = random.Random(7)
    pairs = random_pairs(CONFIG, 0, 2, ("q_proj",))
    folder = peft_folder(tmp_path / "peft", pairs)
    files = [*folder.iterdir(), gguf_file(tmp_path / "one.gguf", pairs, 4.0)]
    raised = 0
    for _ in range(300):
        path = rng.choice(files)
        whole = path.read_bytes()
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(min(len(damaged), 600))
            damaged[at] = rng.randrange(256)
        path.write_bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])])
        try:
            opened(folder if path.parent == folder else path, BASE)
        except GemmaJaxError:
            raised += 1
        path.write_bytes(whole)
    assert raised > 150
    assert json.loads((folder / "adapter_config.json").read_text())["r"] == 2
