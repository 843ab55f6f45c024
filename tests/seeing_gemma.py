"""A tiny random Gemma that sees, as a folder of the Hub has it: Gemma 3's tower beside a text tower of any format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.seams.media_encoder import Tensor
from langchain_gemma_jax.models.vision.media_config import MediaFiles, senses_of

MARKS = ("<start_of_image>", "<image_soft_token>", "<end_of_image>")
SOFT_TOKENS = 4
VISION = {
    "model_type": "siglip_vision_model",
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def add_sight(folder: Path, seed: int = 0) -> Path:
    """Give the folder of a tiny Gemma a tower, and its vocabulary the tokens for it."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for mark in MARKS:
        vocabulary[mark] = len(vocabulary)
        tokenizer["added_tokens"].append({"id": vocabulary[mark], "content": mark} | how)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    text = json.loads((folder / "config.json").read_text())
    begin, soft, end = (vocabulary[mark] for mark in MARKS)
    config = {
        "model_type": "gemma3",
        "text_config": text,
        "vision_config": VISION,
        "mm_tokens_per_image": SOFT_TOKENS,
        "boi_token_index": begin,
        "image_token_index": soft,
        "eoi_token_index": end,
        **{name: text[name] for name in ("eos_token_id", "bos_token_id", "pad_token_id", "torch_dtype")},
    }
    (folder / "config.json").write_text(json.dumps(config))
    senses = senses_of(MediaFiles(config, {}, "config.json", config_from_hf(config, "config.json"), lambda _: [0]))
    assert senses is not None
    numbers = np.random.default_rng(seed)
    tensors = load((folder / "model.safetensors").read_bytes())
    tensors = {f"language_model.{name}": array for name, array in tensors.items()}
    for encoder in senses.encoders:
        for part in encoder.tensors().parts():
            tensors |= {tensor.name: _made(tensor, numbers) for tensor in part.values()}
    (folder / "model.safetensors").write_bytes(save(tensors))
    return folder


def _made(tensor: Tensor, numbers: np.random.Generator) -> np.ndarray:
    scale = 0.4 if tensor.is_matrix else 0.2
    return (numbers.normal(0, scale, tensor.stored or tensor.shape) + (not tensor.is_matrix)).astype(np.float32)
