"""Files of models as a Hub has them, and what a cache holds of them."""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save

TOKEN = "hf_CanaryThatMustNeverBeShown"


def weights(seed=0, size=100):
    return save({"model.norm.weight": np.random.default_rng(seed).normal(size=size).astype(np.float32)})


WEIGHTS = weights()


FILES = {
    "chat_template.jinja": b"{{ x }}",
    "config.json": b'{"model_type": "gemma3_text"}',
    "generation_config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "tokenizer.json": b'{"version": "1.0"}',
    "tokenizer_config.json": b'{"a": 1}',
}


def held(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def blobs(tmp_path):
    return sorted(path.name for path in tmp_path.glob("cache/models--*/blobs/*"))


def file_request(method, commit, name="model.safetensors"):
    return f"{method} /org/model/resolve/{commit}/{name}"
