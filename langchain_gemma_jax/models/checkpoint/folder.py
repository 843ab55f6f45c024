"""Opens the model in a folder. This is the one place that tells the formats apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.hf_names import hf_naming
from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors
from langchain_gemma_jax.models.checkpoint.sentence_transformers import (
    read_embedder,
    refuse_other_layout,
    with_matrices,
)
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.tensor_source import TensorSource

CONFIG = "config.json"
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BESIDE_A_MODEL = (
    "Give its base as the model and the folder as adapter=..., or merge it into its base (merge_and_unload)."
)
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
"""File endings of pickles. Reading one runs the code that it holds, so they are never opened."""


def open_folder(path: Path) -> Checkpoint[TensorSource]:
    """Open the model in a folder. The caller closes it.

    ``config.json`` with ``*.safetensors`` is a Hugging Face checkpoint, in the layout of Sentence Transformers if
    its attention is bidirectional. Else the folder, or one folder in it, may be an Orbax checkpoint. Headers are read
    and checked, but no tensors.

    Raises:
        CheckpointNotFoundError: there is no such folder, or no model in it in a format that is read here.
        CorruptCheckpointError, TensorMismatchError, ConfigError, UnsupportedModelError: the model cannot be used.
        UnsafeCheckpointError: there are only pickles, or a link leads out of the folder.
    """
    try:
        return _open(path)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(error.filename or path, "files that can be read", error.strerror or str(error)) from error


def _open(path: Path) -> Checkpoint[TensorSource]:
    names = _names(path)
    if ADAPTER in names:
        raise UnsupportedModelError(f"{path / ADAPTER}: expected a model, found an adapter (LoRA). {BESIDE_A_MODEL}")
    if any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return _open_hf(path)
    from langchain_gemma_jax.models.checkpoint.official.orbax import find_orbax, open_orbax

    if (orbax := find_orbax(path)) is not None:
        if CONFIG in names:
            refuse_other_layout(read_object(real_file(path, CONFIG), path / CONFIG), path / CONFIG)
        return open_orbax(orbax, _read_config(path) if CONFIG in names else None)
    pickles = [name for name in names if name.lower().endswith(PICKLES)]
    if pickles:
        raise UnsafeCheckpointError(
            path,
            "model.safetensors",
            f"weights as pickles only: {_few(pickles)}",
            "Reading a pickle runs the code in it, so none was opened. Take a safetensors version of the model.",
        )
    raise CheckpointNotFoundError(
        path,
        f"{CONFIG} with model.safetensors or its shards (Hugging Face), or an Orbax checkpoint",
        _few(names) or "an empty folder",
    )


def _open_hf(path: Path) -> Checkpoint[TensorSource]:
    config, dense = _read_config(path), None
    if config.embedding is not None:
        dense = read_embedder(path, config)
        config = dense.config
    own = open_safetensors(path)
    source = own if dense is None else with_matrices(path, own, dense.folders)
    try:
        naming = hf_naming(config, source.names(), source.location, dense.tensors if dense else ())
        return Checkpoint[TensorSource](config, source, naming)
    except BaseException:
        source.close()
        raise


def _read_config(path: Path) -> ModelConfig:
    shown = path / CONFIG
    return config_from_hf(read_object(real_file(path, CONFIG), shown), str(shown))


def _names(path: Path) -> list[str]:
    if not path.is_dir():
        advice = "Give the folder that the file is in." if path.exists() else ""
        raise CheckpointNotFoundError(path, "a model's folder", "a file" if path.exists() else "nothing", advice)
    return sorted(entry.name for entry in path.iterdir())


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
