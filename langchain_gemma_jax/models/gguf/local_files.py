"""GGUF files of other programs on this machine: Ollama, the Hub's cache, llama.cpp, LM Studio."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax import config
from langchain_gemma_jax.models.checkpoint.gguf_file_names import shards_of, text_models
from langchain_gemma_jax.models.gguf.header import ARCHITECTURE, KIND, first_texts
from langchain_gemma_jax.models.gguf.mixture import mixture_of
from langchain_gemma_jax.models.gguf.ollama import PREFIX, ollama_models

_DEEPEST = 6  # folders below a cache's


@dataclass(frozen=True)
class LocalFile:
    """A model on this machine."""

    source: str  # the name for ``load`` and ``ChatGemmaJax(model=...)``
    path: Path
    nbytes: int  # on the disk, of all its shards
    program: str  # the program that it belongs to
    architecture: str | None  # "gemma3", "llama"; None: unknown
    is_adapter: bool = False  # beside a model of that architecture

    @property
    def is_gemma(self) -> bool:
        """True if its metadata name a Gemma."""
        return (self.architecture or "").startswith("gemma")

    @property
    def mixture(self) -> str | None:
        """The name of its quantization, with the formats of its tensors; of shards, those of the first. None: unknown.

        Its header is read for that, which has the whole vocabulary.
        """
        return mixture_of(self.path)


def local_files() -> Iterator[LocalFile]:
    """Yield every GGUF file of a text model in these programs' folders. Only its beginning is read."""
    for model in ollama_models():
        path = model.path
        yield LocalFile(PREFIX + model.name, path, path.stat().st_size, "Ollama", first_texts(path).get(ARCHITECTURE))
    for program, folder in _folders().items():
        for path in _below(folder, _DEEPEST):
            nbytes = sum(each.stat().st_size for each in shards_of(path) if each.is_file())
            texts = first_texts(path)
            adapts = texts.get(KIND) == "adapter"
            yield LocalFile(str(path), path, nbytes, program, texts.get(ARCHITECTURE), is_adapter=adapts)


def _folders() -> dict[str, Path]:
    from huggingface_hub import constants

    return {
        "Hugging Face": Path(constants.HF_HUB_CACHE),
        "llama.cpp": config.llama_cache(),
        "LM Studio": Path.home() / ".lmstudio" / "models",
    }


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the first file of each model in a folder and its subfolders; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    yield from (folder / name for name in text_models([entry.name for entry in entries if entry.is_file()]))
    for entry in entries:
        if depth and entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), depth - 1)
