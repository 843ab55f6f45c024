"""A GGUF model's inputs other than text, read from the header of its mmproj file alone, without JAX."""

from __future__ import annotations

from pathlib import Path

from langchain_gemma_jax.models.checkpoint.gguf_file_names import projectors, text_models
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.gguf.header import read_header

PICTURES, SOUNDS = ("clip.vision.projector_type", "clip.projector_type"), ("clip.audio.projector_type",)
"""The metadata keys of a file's picture and sound encoders."""


def mmproj_inputs(model: Path) -> frozenset[str]:
    """Return the inputs of the encoders in the folder of a model's file: ``image`` and ``audio``, if any.

    Raises:
        OSError, CheckpointError: the folder or the mmproj file cannot be read.
    """
    folder = model if model.is_dir() else model.parent
    names = [each.name for each in folder.iterdir()]
    models = text_models(names) if model.is_dir() else [model.name]
    for name in projectors(names, models[0])[:1] if models else ():
        file = OpenFile(folder / name, folder / name)
        try:
            metadata = read_header(file).metadata
        finally:
            file.close()
        kinds = {"image": PICTURES, "audio": SOUNDS}
        return frozenset(kind for kind, keys in kinds.items() if any(metadata.get(key) for key in keys))
    return frozenset()
