"""A file of Gemma 4 E2B's shape with random weights, to measure memory: half of it is per-layer embeddings.

The vocabulary is the real 270M's. The matrices are in Q4_0 and the per-layer embeddings in Q8_0, as most files keep
what is only looked up in more bits than what is multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import gguf
import numpy as np

from benchmarks.files.random_files import drawn
from benchmarks.files.real_files import FILE, FOLDER, copy_fields, finish
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gguf.gguf_names import GgufNaming

PATH = FOLDER / "gemma-4-e2b-random-Q4_0.gguf"
KIND, KIND_OF_ROWS = "Q4_0", "Q8_0"
LOOKED_UP = "per_layer_token_embd.weight"


def e_size_file() -> Path:
    """The file, made once: some 4 GB. It needs the real 270M beside it."""
    if PATH.exists():
        return PATH
    config, unfinished = published("gemma-4-e2b"), PATH.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, "gemma4", use_temp_file=True)
    named = {"general.name": "Gemma 4 E2B, random weights"}
    copy_fields(gguf.GGUFReader(FILE), writer, named, without="gemma3.")  # the vocabulary alone
    for name, value in facts_of(config).items():
        match value:
            case list() if value and isinstance(value[0], bool):
                writer.add_array(name, cast("list[bool]", value))
            case list():
                writer.add_array(name, cast("list[int]", value))
            case float():
                writer.add_float32(name, value)
            case _:
                writer.add_uint32(name, cast("int", value))
    random, naming = np.random.default_rng(0), GgufNaming(experts_apart=False)
    for path, _ in walk(abstract(config, "float32")):
        for part in naming(config, path):
            if len(part.shape) < 2:
                writer.add_tensor(part.name, np.ones(part.shape or (1,), np.float32))
                continue
            kind = KIND_OF_ROWS if part.name == LOOKED_UP else KIND
            spread = part.shape[1] ** -0.5 * (0.3 if part.name == "token_embd.weight" else 1.0)
            shape = cast("tuple[int, int]", part.shape)
            writer.add_tensor(part.name, drawn(random, shape, kind, spread), raw_dtype=gguf.GGMLQuantizationType[kind])
    pairs = max(layer.head_dim for layer in config.layers) // 2
    writer.add_tensor("rope_freqs.weight", np.array([1.0] * (pairs // 4) + [1e30] * (pairs - pairs // 4), np.float32))
    finish(writer)
    unfinished.rename(PATH)
    return PATH


def facts_of(config: ModelConfig) -> Mapping[str, object]:
    """The model's facts by the names of the file format, as its converter writes them."""
    sliding = next(layer for layer in config.layers if layer.window is not None)
    everywhere = next(layer for layer in config.layers if layer.window is None)
    rows = config.per_layer_input
    facts: dict[str, object] = {
        "context_length": config.max_context,
        "embedding_length": config.width,
        "block_count": len(config.layers),
        "attention.head_count": config.heads,
        "attention.layer_norm_rms_epsilon": float(config.norm_eps),
        "attention.sliding_window": sliding.window,
        "attention.sliding_window_pattern": [layer.window is not None for layer in config.layers],
        "attention.shared_kv_layers": sum(not layer.owns_kv for layer in config.layers),
        "attention.head_count_kv": sliding.kv_heads,
        "attention.key_length": everywhere.head_dim,
        "attention.value_length": everywhere.head_dim,
        "attention.key_length_swa": sliding.head_dim,
        "attention.value_length_swa": sliding.head_dim,
        "rope.dimension_count": everywhere.head_dim,
        "rope.dimension_count_swa": sliding.head_dim,
        "rope.freq_base": 1e6,
        "feed_forward_length": [layer.ffw_width for layer in config.layers],
        "embedding_length_per_layer_input": 0 if rows is None else rows.width,
        "final_logit_softcapping": float(config.logits_softcap or 0),
    }
    return {f"gemma4.{name}": value for name, value in facts.items()}
