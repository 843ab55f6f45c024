"""The encoders in an mmproj file: checked when the model is loaded, read when the first picture or sound comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import CheckpointError, ConfigError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import are_one_model, projectors
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.encoders.mmproj_config import ADVICE, Projector, media_files
from langchain_gemma_jax.models.encoders.mmproj_names import StoredNames
from langchain_gemma_jax.models.gguf.gguf_source import GgufSource, open_source
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.splitting import apart
from langchain_gemma_jax.models.seams.media_encoder import Tensor
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.media_config import senses_of
from langchain_gemma_jax.models.vision.model_media import ModelMedia, ReadsTensor

_DENSE = ("float32", "float16", "bfloat16")


def mmproj_encoders(model: Path, named: Path | None, text: ModelConfig, tokenizer: Tokenizer) -> ModelMedia | None:
    """Return the encoders in the mmproj file of a GGUF model. None: there is no such file.

    In a folder of several models, a file that does not fit this model belongs to another one, and is skipped.

    Args:
        model: the model's file, or the first of its shards.
        named: the mmproj file, if it is known. None: look for it in the model's folder.
        text: the text tower.
        tokenizer: the model's tokenizer.

    Raises:
        CheckpointError, ConfigError, UnsupportedModelError: the file belongs to another model, is of a kind that is not
            read, or is damaged.
    """
    names = [] if named is not None else _names(model.parent)
    paths = [named] if named is not None else [model.parent / name for name in projectors(names, model.name)]
    problem: CheckpointError | ConfigError | UnsupportedModelError | None = None
    for path in paths:
        try:
            return _opened(path, text, tokenizer)
        except (CheckpointError, ConfigError, UnsupportedModelError) as error:
            problem = problem or error
    if problem is not None and are_one_model(names):
        raise problem
    return None


def _opened(path: Path, text: ModelConfig, tokenizer: Tokenizer) -> ModelMedia:
    files = Unchanged.now(path)
    with _source(path) as source:
        projector = Projector(source)
        if (misfit := projector.misfit(text)) is not None:
            raise TensorMismatchError(path, "encoders for the model beside this file", misfit, ADVICE)
        senses = senses_of(media_files(projector, text, tokenizer))
        if senses is None:  # cannot happen: ``media_files`` and ``senses_of`` have the same kinds
            raise UnsupportedModelError(f"{path}: expected a projector type that is read here. {ADVICE}")
        names = StoredNames(projector.swapped)
        used = {
            _check(source, names, tensor)
            for encoder in senses.encoders
            for part in encoder.tensors().parts()
            for tensor in part.values()
        }
    if others := sorted(set(source.names()) - used):
        shown = ", ".join(others[:4])
        raise TensorMismatchError(path, f"the tensors of {projector.kind} encoders, and no others", f"also {shown}")
    return ModelMedia(senses.support, senses.encoders, partial(_reader, path, names, files))


def _check(source: GgufSource, names: StoredNames, tensor: Tensor) -> str:
    """Return the stored name of a tensor, after a check that it is there, has its shape, and can be read."""
    stored = names(tensor)
    if stored.name not in source.names():
        raise TensorMismatchError(source.location, f"a tensor {stored.name}", "none")
    if (found := source.shape(stored.name)) != stored.shape:
        raise TensorMismatchError(source.location, f"{stored.name} of the shape {stored.shape}", f"{found}")
    if (kind := source.dtype(stored.name)) not in (*_DENSE, *BLOCK_FORMATS):
        advice = "Take one that is stored as BF16, F16, F32 or Q8_0."
        raise TensorMismatchError(source.location, f"{stored.name} in a type that is read here", kind, advice)
    return stored.name


@contextmanager
def _reader(path: Path, names: StoredNames, files: Unchanged) -> Iterator[ReadsTensor]:
    files.check()
    with _source(path) as source:

        def read(tensor: Tensor) -> npt.NDArray[Any]:
            stored = names(tensor)
            return stored.arrange(_numbers(source, stored.name))

        yield read
        files.check()


def _numbers(source: GgufSource, name: str) -> npt.NDArray[Any]:
    """Return the unpacked numbers of a tensor."""
    if source.dtype(name) in _DENSE:
        return np.asarray(source.read(name))
    kind = BLOCK_FORMATS[source.block_format(name)]
    pieces = [numbers(kind, apart(kind, blocks.view(np.uint8))) for blocks in source.read_blocks(name)]
    return np.concatenate(pieces).reshape(source.shape(name))


def _source(path: Path) -> GgufSource:
    try:
        return open_source(path)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(path, "a file that can be read", error.strerror or str(error)) from error


def _names(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in folder.iterdir())
    except OSError:
        return []
