"""Tiny targets with their drafters as files, and what transformers drafted with them (``make_drafters.py``)."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from langchain_gemma_jax.models.checkpoint.hf_names import TOKEN_ORDER, HfNaming
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.drafter_config import drafter_from_hf
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from tests.parity.architectures import Raw
from tests.parity.drafters import DRAFTERS, TARGETS, VOCABULARY
from tests.parity.made_up import tensor


@cache
def golden() -> dict[str, Any]:
    """The rounds of transformers, by kind of drafter."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("drafters.json").read_text())["answers"]
    return found


def accepted_in(said: dict[str, Any]) -> int:
    """The number of drafted tokens of a golden answer that were accepted."""
    answer, done, found = said["answer"], 1, 0
    for drafts in said["drafts"]:
        right = 0
        while right < len(drafts) and done + right < len(answer) and drafts[right] == answer[done + right]:
            right += 1
        done, found = done + right + 1, found + right
    return found


def write_target(name: str, folder: Path, vocabulary: int = VOCABULARY) -> Path:
    """Write the model that is drafted for."""
    raw = {**TARGETS[name], "vocab_size": vocabulary, "vocab_size_per_layer_input": vocabulary}
    return _written(folder, raw, config_from_hf(raw, name), name)


def write_drafter(name: str, folder: Path, vocabulary: int = VOCABULARY, **changes: object) -> Path:
    """Write a drafter, with changes in its ``config.json`` that its tensors do not know of."""
    raw = DRAFTERS[name]
    raw = {**raw, "text_config": {**raw["text_config"], "vocab_size": vocabulary}}  # type: ignore[dict-item]
    config = drafter_from_hf(raw, name)
    # A drafter's layers have no keys: which of the target's they read makes no difference to its tensors.
    layers = tuple(replace(layer, kv_from=0, k_eq_v=False) for layer in config.layers)
    return _written(folder, raw, config.replace(layers=layers), f"{name} drafter", **changes)


def _written(folder: Path, raw: Raw, config: ModelConfig, salt: str, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    naming = HfNaming("model.", "lm_head.weight")
    parts = [part for path, _ in walk(abstract(config)) for part in naming(config, path)]
    tensors = {part.name: tensor(part.name, part.shape, salt, 0, norm_offset=0.0) for part in parts}
    if config.drafting is not None and config.drafting.centroids:
        tensors[TOKEN_ORDER] = np.arange(config.vocab_size).reshape(-1, config.drafting.centroids).T.reshape(-1).copy()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**raw, **changes}))
    return folder
