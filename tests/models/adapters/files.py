"""Files of random adapters, as PEFT and llama.cpp write them, and the weights that they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save_file

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
ALL = (*ATTENTION, *FEED_FORWARD)
IN_GGUF = dict(zip(ALL, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), strict=True))

Pairs = dict[tuple[int, str], tuple[np.ndarray, np.ndarray]]


def projections(config: ModelConfig, layer: int) -> dict[str, tuple[int, int]]:
    """A layer's projections as checkpoints have them, with outputs and inputs: written out from transformers' code."""
    one, width = config.layers[layer], config.width
    queries, keys = config.heads * one.head_dim, one.kv_heads * one.head_dim
    found = {"q_proj": (queries, width), "o_proj": (width, queries)}
    if one.kv_from is None:
        found["k_proj"] = (keys, width)
        if not one.k_eq_v:
            found["v_proj"] = (keys, width)
    found |= {"gate_proj": (one.ffw_width, width), "up_proj": (one.ffw_width, width)}
    return found | {"down_proj": (width, one.ffw_width)}


def random_pairs(
    config: ModelConfig, seed: int, rank: int = 4, targets: tuple[str, ...] = ALL, *, size: float = 0.3
) -> Pairs:
    """Random matrices of low rank: (lora_A, lora_B) by layer and projection."""
    rng = np.random.default_rng(seed)
    return {
        (layer, name): (
            rng.normal(0, size, (rank, inputs)).astype(np.float32),
            rng.normal(0, size, (outputs, rank)).astype(np.float32),
        )
        for layer in range(len(config.layers))
        for name, (outputs, inputs) in projections(config, layer).items()
        if name in targets
    }


def module(layer: int, projection: str) -> str:
    return f"model.layers.{layer}.{'self_attn' if projection in ATTENTION else 'mlp'}.{projection}"


def peft_folder(folder: Path, pairs: Pairs, **config: Any) -> Path:
    """Write a folder as PEFT's ``save_pretrained`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    rank = next(iter(pairs.values()))[0].shape[0]
    raw = {
        "peft_type": "LORA", "base_model_name_or_path": "tiny/base", "r": rank, "lora_alpha": 2 * rank, "bias": "none",
        "target_modules": sorted({name for _, name in pairs}), "task_type": "CAUSAL_LM", "use_dora": False,
        "use_rslora": False, "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {}, "lora_dropout": 0.1,
        "init_lora_weights": True, "inference_mode": True,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(raw | config))
    tensors: dict[str, np.ndarray] = {}
    for place, (down, up) in pairs.items():
        tensors[f"base_model.model.{module(*place)}.lora_A.weight"] = down
        tensors[f"base_model.model.{module(*place)}.lora_B.weight"] = up
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def gguf_file(path: Path, pairs: Pairs, alpha: float | None, architecture: str = "gemma3", **changes: str) -> Path:
    """Write a file as llama.cpp's ``convert_lora_to_gguf.py`` does."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_type(changes.get("type", "adapter"))
    writer.add_string("adapter.type", changes.get("adapter_type", "lora"))
    if alpha is not None:
        writer.add_float32("adapter.lora.alpha", alpha)
    for (layer, projection), (down, up) in pairs.items():
        writer.add_tensor(f"blk.{layer}.{IN_GGUF[projection]}.weight.lora_a", down)
        writer.add_tensor(f"blk.{layer}.{IN_GGUF[projection]}.weight.lora_b", up)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def merged(params: Mapping[str, Any], config: ModelConfig, pairs: Pairs, scale: float) -> dict[str, Any]:
    """The parameters, dense and outputs first, with an adapter merged into them: in numpy, by projections' rows."""
    found = {name: value for name, value in params.items() if name != "layers"}
    layers = [dict(layer) for layer in params["layers"]]
    rows = {"qkv": ("q_proj", "k_proj", "v_proj"), "attn_out": ("o_proj",), "gate_up": ("gate_proj", "up_proj")}
    rows["down"] = ("down_proj",)
    assert {key for _, _, key in (path for path, _ in walk(abstract(config)) if len(path) == 3)} >= rows.keys()
    for number, layer in enumerate(layers):
        shapes = projections(config, number)
        for key, names in rows.items():
            matrix, at = np.array(layer[key], np.float32), 0
            for name in names:
                if name in shapes:
                    outputs = shapes[name][0]
                    if (number, name) in pairs:
                        down, up = pairs[number, name]
                        matrix[at : at + outputs] += scale * (up @ down)
                    at += outputs
            assert at == len(matrix)
            layer[key] = matrix
    return {**found, "layers": layers}
