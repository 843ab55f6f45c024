"""A tiny random embedding model as a folder, in the layout of Sentence Transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tests import tiny_gemma

DENSE = {"2_Dense": (24, 16), "3_Dense": (16, 24)}
PROMPTS = {"query": "TASK: QUERY ", "document": "TITLE: NONE "}
CONTEXT = 96


def tiny_embedder(folder: Path, *, seed: int = 0, dense: Mapping[str, tuple[int, int]] = DENSE) -> Path:
    """Write one. Its vectors have 16 numbers."""
    random = np.random.default_rng(seed)
    files = tiny_gemma.tiny_gemma(seed=seed)
    del files["generation_config.json"]
    config = json.loads(files["config.json"]) | {
        "architectures": ["Gemma3TextModel"],
        "use_bidirectional_attention": True,
        "max_position_embeddings": 2 * CONTEXT,
    }
    modules = ["Transformer", "Pooling", *["Dense"] * len(dense), "Normalize"]
    places = ["", "1_Pooling", *dense, f"{2 + len(dense)}_Normalize"]
    listed = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for number, (kind, place) in enumerate(zip(modules, places, strict=True))
    ]
    pooling = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    files |= {
        "config.json": json.dumps(config).encode(),
        "modules.json": json.dumps(listed).encode(),
        "config_sentence_transformers.json": json.dumps({"prompts": PROMPTS}).encode(),
        "sentence_bert_config.json": json.dumps({"max_seq_length": CONTEXT, "do_lower_case": False}).encode(),
        "1_Pooling/config.json": json.dumps(pooling).encode(),
    }
    for place, (outputs, inputs) in dense.items():
        said = {"in_features": inputs, "out_features": outputs, "bias": False}
        said |= {"activation_function": "torch.nn.modules.linear.Identity"}
        weight = random.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        files |= {
            f"{place}/config.json": json.dumps(said).encode(),
            f"{place}/model.safetensors": save({"linear.weight": weight}),
        }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
