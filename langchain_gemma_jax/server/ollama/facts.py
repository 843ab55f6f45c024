"""Facts about a model from its files, without loading it: its size, its kind, its format, its context."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from langchain_gemma_jax.chat.asking.model_profile import profile_of
from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import shards_of
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.embedded import CONTEXT, embedded_folder
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.gguf.header import ARCHITECTURE, Header, read_header
from langchain_gemma_jax.models.gguf.mixture import FILE_TYPE, NAMES
from langchain_gemma_jax.models.gguf.ollama import PREFIX, find_ollama
from langchain_gemma_jax.models.hub.download import cached_copy
from langchain_gemma_jax.models.torchax.asked import PREFIX as TORCHAX

_OURS = {"repetition_penalty": "repeat_penalty"}  # names of sampling that differ in Ollama
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_EMBEDS = "modules.json"  # of a folder in the layout of Sentence Transformers
_KEPT = 64  # models whose files were read


@dataclass(frozen=True)
class FileFacts:
    """Facts about one model. Those that its files do not tell are empty."""

    name: str
    nbytes: int = 0
    modified: float = 0.0  # seconds since 1970
    digest: str = ""  # of its files' names, sizes and times: another one means other files
    format: str = ""
    family: str = ""
    parameters: int = 0
    quantization: str = ""
    context: int | None = None
    embeds: bool = False
    sampling: Mapping[str, object] = field(default_factory=dict)  # what its authors recommend

    @property
    def details(self) -> dict[str, Any]:
        """The facts that Ollama calls details."""
        return {
            "parent_model": "",
            "format": self.format,
            "family": self.family,
            "families": [self.family] if self.family else [],
            "parameter_size": _counted(self.parameters),
            "quantization_level": self.quantization,
        }

    @property
    def capabilities(self) -> list[str]:
        """The model's abilities, in Ollama's words."""
        if self.embeds:
            return ["embedding"]
        profile = profile_of(self.name)
        words = (("image_inputs", "vision"), ("audio_inputs", "audio"), ("reasoning_output", "thinking"))
        return ["completion", "tools", *(word for key, word in words if profile.get(key))]


def facts_of(name: str) -> FileFacts:
    """Return what a model's files say of it. Where they are not here, or cannot be read, little is known."""
    try:
        path, sampling = _place(name)
        return FileFacts(name) if path is None else _read(name, path, sampling)
    except (GemmaJaxError, OSError):
        return FileFacts(name)


def _place(name: str) -> tuple[Path | None, Mapping[str, object]]:
    """Return the path of a model's files, and the settings of sampling that are stored elsewhere."""
    if (own := embedded_folder(name)) is not None:
        return own, {}
    if name.startswith(PREFIX):
        found = find_ollama(name)
        return found.path, found.defaults
    bare = name.removeprefix(TORCHAX)
    path = Path(os.path.expanduser(bare))  # noqa: PTH111  which never raises
    if os.path.exists(path):  # noqa: PTH110
        return path, {}
    model_id, _, file = bare.partition(":")
    return cached_copy(model_id, file or None), {}


def _read(name: str, path: Path, sampling: Mapping[str, object]) -> FileFacts:
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else list(shards_of(path))
    known = [(each, each.stat()) for each in files]
    seen = tuple((str(each), stat.st_size, stat.st_mtime_ns) for each, stat in known)
    read = _of_folder(path, seen) if path.is_dir() else _of_gguf(tuple(files), seen)
    context = CONTEXT if embedded_folder(name) is not None else read.get("context")
    own = {key: value for key, value in {**read.pop("sampling", {}), **sampling}.items() if key in _SAMPLING}
    return FileFacts(
        name,
        nbytes=sum(stat.st_size for _, stat in known),
        modified=max((stat.st_mtime for _, stat in known), default=0.0),
        digest=hashlib.sha256(repr(seen).encode()).hexdigest(),
        sampling={_OURS.get(key, key): value for key, value in own.items()},
        **{**read, "context": context},
    )


def _of_folder(path: Path, seen: object) -> dict[str, Any]:
    only = [each for each in path.iterdir() if each.suffix == ".gguf"]
    if not (path / "config.json").is_file() and only:
        return _of_gguf(tuple(sorted(only)), seen)
    raw = read_object(path / "config.json", path)
    config = config_from_hf(raw, str(path))
    generation = path / "generation_config.json"
    return {
        "format": "safetensors",
        "family": str(raw.get("model_type", "")),
        "parameters": total_bytes(abstract(config)) // 2,  # of two bytes each
        "quantization": str(raw.get("dtype") or raw.get("torch_dtype") or "").upper(),
        "context": config.max_context,
        "embeds": (path / _EMBEDS).is_file(),
        "sampling": read_object(generation, path) if generation.is_file() else {},
    }


@lru_cache(_KEPT)
def _headers(files: tuple[Path, ...], seen: object) -> tuple[str, int, str, int | None]:  # noqa: ARG001  part of the key
    """Return family, parameters, quantization and context by the headers of a file and its shards."""
    headers = [_header(each) for each in files]
    metadata = headers[0].metadata
    family = str(metadata.get(ARCHITECTURE, ""))
    number, context = metadata.get(FILE_TYPE), metadata.get(f"{family}.context_length")
    count = sum(math.prod(entry.shape) for header in headers for entry in header.tensors.values())
    kind = NAMES.get(number, "") if type(number) is int else ""
    return family, count, kind, context if type(context) is int else None


def _of_gguf(files: tuple[Path, ...], seen: object) -> dict[str, Any]:
    family, count, kind, context = _headers(files, seen)
    return {
        "format": "gguf",
        "family": family,
        "parameters": count,
        "quantization": kind,
        "context": context,
        "embeds": "embedding" in family,
    }


def _header(path: Path) -> Header:
    file = OpenFile(path, path)
    try:
        return read_header(file)
    finally:
        file.close()


def _counted(number: int) -> str:
    """Return a number of parameters as Ollama writes it.

    >>> _counted(999_885_952), _counted(268_098_176), _counted(0)
    ('999.89M', '268.10M', '')
    """
    if not number:
        return ""
    return f"{number / 1e9:.1f}B" if number >= 1e9 else f"{number / 1e6:.2f}M"
