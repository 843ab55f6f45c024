"""Adapters as llama.cpp has them: a GGUF file with ``general.type`` "adapter"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.adapters.adapter import Adapter, Base, Float32s, LowRank, Place, made, paired
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_source import GgufSource, open_source

_PROJECTIONS: Mapping[str, str] = {
    "attn_q": "q_proj",
    "attn_k": "k_proj",
    "attn_v": "v_proj",
    "attn_output": "o_proj",
    "ffn_gate": "gate_proj",
    "ffn_up": "up_proj",
    "ffn_down": "down_proj",
}
_NAME = re.compile(rf"blk\.(\d{{1,4}})\.({'|'.join(_PROJECTIONS)})\.weight\.lora_([ab])")


def read_file(path: Path, base: Base) -> Adapter:
    """Read the adapter in a GGUF file for a model.

    Raises:
        CheckpointError: the file cannot be used, or is for another model. ConfigError, UnsupportedModelError: it is no
        adapter of low rank, or changes something that is not applied here.
    """
    source = open_source(path)
    try:
        return _read(path, source, base)
    finally:
        source.close()


def _read(path: Path, source: GgufSource, base: Base) -> Adapter:
    metadata = Metadata(source.header, source.location)
    kinds = metadata.text("general.type", "model"), metadata.text("adapter.type", "lora")
    if kinds != ("adapter", "lora"):
        raise ConfigError(
            f"{path}: expected an adapter, general.type 'adapter' and adapter.type 'lora', found {kinds[0]!r} and "
            f"{kinds[1]!r}. A whole model is given as model=."
        )
    alpha = metadata.number("adapter.lora.alpha", 0.0) or 0.0
    if not abs(alpha) < 1e6:  # NaN too
        raise ConfigError(f"{path}: expected adapter.lora.alpha to be a number, found {alpha!r}.")
    halves: dict[str, dict[Place, Float32s]] = {"a": {}, "b": {}}
    for name in source.names():
        if (found := _NAME.fullmatch(name)) is None:
            raise UnsupportedModelError(
                f"{path}: adapters change {', '.join(_PROJECTIONS)} here; found {short(name)}. Merge it into its model "
                "with llama.cpp's llama-export-lora, and load the result."
            )
        halves[found[3]][int(found[1]), _PROJECTIONS[found[2]]] = source.read(name).astype(np.float32)
    pairs: dict[Place, LowRank] = {}
    for place, (down, up) in paired(path, halves["a"], halves["b"]).items():
        scale = np.float32(alpha / down.shape[0] if alpha else 1.0)  # as llama.cpp takes an alpha that is not there
        pairs[place] = LowRank(down, (up * scale).astype(np.float32))
    named = metadata.text("general.base_model.0.name", "") or metadata.text("general.architecture", "")
    return made(path.stem, path, repr(named) if named else "", pairs, base)
