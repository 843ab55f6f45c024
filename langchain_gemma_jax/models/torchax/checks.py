"""Checks of a folder for a model that can be served through torchax, before torch is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointNotFoundError, UnsafeCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.folder import ADAPTER, CONFIG, PICKLES
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object

_SAFE = (".safetensors", ".safetensors.index.json")


def checked_folder(folder: Path) -> dict[str, object]:
    """Return the ``config.json`` of a folder, after a check that its model can be served.

    Args:
        folder: the model's folder.

    Raises:
        CheckpointNotFoundError, CorruptCheckpointError: there is no model in it.
        UnsafeCheckpointError: its weights are pickles, or a link leads out of it.
        UnsupportedModelError: an adapter, an encoder-decoder, or packed weights.
    """
    if not folder.is_dir():
        raise CheckpointNotFoundError(folder, "a folder with config.json and *.safetensors", "no such folder")
    names = sorted(path.name for path in folder.iterdir())
    if ADAPTER in names:
        raise UnsupportedModelError(
            f"{folder / ADAPTER}: the folder holds an adapter (LoRA), and beside other families than Gemma none is "
            "applied. Merge it into its base (in PEFT, merge_and_unload), and load the result."
        )
    if CONFIG not in names:
        raise CheckpointNotFoundError(folder / CONFIG, "a model's configuration", "nothing", "It comes with the model.")
    _check_weights(folder, names)
    for name in names:
        if name.endswith((*_SAFE, ".json", ".jinja", ".py")):
            real_file(folder, name)
    raw = read_object(folder / CONFIG, folder / CONFIG)
    _check_kind(folder, raw)
    return raw


def _check_weights(folder: Path, names: list[str]) -> None:
    if any(name.endswith(_SAFE) for name in names):
        return
    pickles = [name for name in names if name.lower().endswith(PICKLES)]
    if pickles:
        raise UnsafeCheckpointError(
            folder,
            "weights as *.safetensors",
            f"pickles only, {pickles[0]} for one",
            "Reading a pickle runs the code in it, so none is ever opened. Convert it where you trust it: load it with "
            "transformers there, and save_pretrained.",
        )
    raise CheckpointNotFoundError(folder, "weights as *.safetensors", "none", "Download them next to config.json.")


def _check_kind(folder: Path, raw: Mapping[str, object]) -> None:
    shown, kind = folder / CONFIG, str(raw.get("model_type"))
    if kind.startswith("diffusion_"):
        raise UnsupportedModelError(
            f"{shown}: {kind!r} writes blocks of text by diffusion. Expected a model that writes token by token."
        )
    if raw.get("is_encoder_decoder"):
        raise UnsupportedModelError(
            f"{shown}: {raw.get('model_type')!r} has an encoder and a decoder. Expected a decoder alone, whose cache "
            "grows with the conversation."
        )
    if "quantization_config" in raw:
        raise UnsupportedModelError(
            f"{shown}: its weights are packed (quantization_config). Expected dense ones; the model that it was made "
            "of has them."
        )
    if "text_config" in raw:
        raise UnsupportedModelError(
            f"{shown}: {raw.get('model_type')!r} reads more than text (text_config). Expected a model of text alone."
        )
