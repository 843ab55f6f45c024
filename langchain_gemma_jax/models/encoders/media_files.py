"""The encoders in a model's folder: they are checked at loading, and their tensors are read when they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.config_fields import Raw
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder, Tensor
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.models.seams.tensor_source import TensorSource
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.media_config import MediaFiles, senses_of
from langchain_gemma_jax.models.vision.model_media import ModelMedia, ReadsTensor

CONFIG = "config.json"
_TOWER = re.compile(r"(vision_tower|vision_embedder|audio_tower|embed_audio)\.")
_SPELLINGS = tuple(
    (re.compile(before), after)
    for before, after in (
        (r"^(model\.)+", ""),
        (r"^vision_tower\.vision_model\.", "vision_tower."),
        (r"^embed_vision\.(patch_|pos_)", r"vision_embedder.\1"),
        (r"^embed_vision\.multimodal_embedder\.", "embed_vision."),
    )
)
# The newest format last: its values override the others.
_PROCESSORS = (("preprocessor_config.json", None), ("processor_config.json", "image_processor"))


def media_in(folder: Path, config: ModelConfig, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
    """Return the encoders of the model in a folder. None: it has no encoders, or its files lack them.

    Raises:
        CheckpointError, ConfigError, UnsupportedModelError: the encoders cannot be used.
    """
    if not (folder / CONFIG).is_file() or not any(folder.glob("*.safetensors")):
        return None
    raw = read_object(real_file(folder, CONFIG), folder / CONFIG)
    if raw.get("vision_config") is None:
        return None
    with open_safetensors(folder) as source:
        if not any(_TOWER.match(_plain(name)) for name in source.names()):
            return None  # a text tower alone, which keeps the whole model's configuration
        senses = senses_of(MediaFiles(raw, _processor(folder), str(folder / CONFIG), config, tokenizer.encode_text))
        there = [] if senses is None else [_is_there(source, encoder) for encoder in senses.encoders]
    if senses is None or not any(there):
        return None
    pictures, sounds = (*there, False)[:2]  # the first encoder is for pictures, the second for sounds
    support = MediaSupport(senses.support.pictures if pictures else None, senses.support.sounds if sounds else None)
    encoders = tuple(encoder for encoder, present in zip(senses.encoders, there, strict=True) if present)
    return ModelMedia(support, encoders, partial(_reader, folder, files))


def _processor(folder: Path) -> Raw:
    settings: dict[str, object] = {}
    for name, inside in _PROCESSORS:
        if (folder / name).is_file():
            whole = read_object(real_file(folder, name), folder / name)
            part = whole if inside is None else whole.get(inside, {})
            settings |= part if isinstance(part, dict) else {}
    return settings


def _is_there(source: TensorSource, encoder: MediaEncoder) -> bool:
    """Return True if an encoder's tensors are in the files, False if none of them is.

    Raises:
        TensorMismatchError: some of them are missing or have another shape.
    """
    names = by_plain_name(source)
    tensors = [tensor for part in encoder.tensors().parts() for tensor in part.values()]
    there = [tensor for tensor in tensors if tensor.name in names]
    if not there:
        return False
    for tensor in tensors:
        shape = tensor.stored or tensor.shape
        if tensor.name not in names:
            raise TensorMismatchError(source.location, f"a tensor {tensor.name}", "none")
        if source.shape(names[tensor.name]) != shape:
            found = source.shape(names[tensor.name])
            raise TensorMismatchError(source.location, f"{tensor.name} of the shape {shape}", f"{found}")
    return True


def by_plain_name(source: TensorSource) -> Mapping[str, str]:
    """Return the stored names by plain name: without the prefixes and inner parts that some checkpoints add."""
    return {_plain(name): name for name in source.names()}


def _plain(name: str) -> str:
    for before, after in _SPELLINGS:
        name = before.sub(after, name)
    return name


@contextmanager
def _reader(folder: Path, files: Unchanged) -> Iterator[ReadsTensor]:
    files.check()
    with open_safetensors(folder) as source:
        names = by_plain_name(source)

        def read(tensor: Tensor) -> npt.NDArray[Any]:
            stored = np.asarray(source.read(names[tensor.name]))
            return stored.astype(np.float32) + np.float32(tensor.added) if tensor.added else stored

        yield read
        files.check()
