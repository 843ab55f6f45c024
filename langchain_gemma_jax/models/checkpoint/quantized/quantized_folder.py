"""Opens a folder with a quantized release, by the kind that its configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.folder import CONFIG
from langchain_gemma_jax.models.checkpoint.quantized.compressed_tensors import (
    check_channels,
    has_channels,
    open_compressed,
)
from langchain_gemma_jax.models.checkpoint.quantized.mobile import MobileCheckpoint, open_mobile
from langchain_gemma_jax.models.checkpoint.sentence_transformers import refuse_other_layout
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object, short
from langchain_gemma_jax.models.packed.from_file import BlockCheckpoint

QUANTIZATION = "quantization_config"
_ADVICE = "Use the unquantized checkpoint, or a GGUF file."


def quantization_of(folder: Path) -> Mapping[str, object] | None:
    """Return the quantization entry of a folder's configuration. None: there is none, or no configuration."""
    try:
        path = real_file(folder, CONFIG)
    except Exception:  # noqa: BLE001  opening the folder reports what is wrong with it
        return None
    raw = read_object(path, folder / CONFIG)
    for table in (raw, raw.get("text_config")):
        if isinstance(table, dict) and isinstance(quantization := table.get(QUANTIZATION), dict):
            return quantization
    return None


def open_quantized(folder: Path, quantization: Mapping[str, object]) -> BlockCheckpoint | MobileCheckpoint:
    """Open the model in such a folder. The caller closes it.

    Raises:
        UnsupportedModelError: it is quantized in a way that is not read here.
        CheckpointError, ConfigError: the files cannot be used.
    """
    shown = folder / CONFIG
    raw = _without(read_object(real_file(folder, CONFIG), shown))
    refuse_other_layout(raw, shown)
    match quantization.get("quant_method"):
        case "compressed-tensors" if has_channels(quantization):
            check_channels(shown, quantization)
            return open_mobile(folder, raw)
        case "compressed-tensors":
            return open_compressed(folder, raw, quantization)
        case "gemma":
            return open_mobile(folder, raw)
        case other:
            raise UnsupportedModelError(
                f"{shown}: expected {QUANTIZATION} with the quant_method compressed-tensors or gemma, as Google's "
                f"releases have it, found {short(other)}. {_ADVICE}"
            )


def _without(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without its entry on quantization, for which it would be refused."""
    plain = {name: value for name, value in raw.items() if name != QUANTIZATION}
    if isinstance(text := raw.get("text_config"), dict):
        plain["text_config"] = {name: value for name, value in text.items() if name != QUANTIZATION}
    return plain
