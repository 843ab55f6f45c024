"""Folders in the layout of Sentence Transformers: a Gemma, with folders for the steps from its tokens to an embedding.

modules.json                        the order of the steps: the Gemma, pooling, matrices, a norm
1_Pooling/config.json               the pooling of a text's tokens: their mean
2_Dense/config.json, *.safetensors  a matrix that the vector is multiplied by; there can be several
config_sentence_transformers.json   the prompts that are put before a text, by task
sentence_bert_config.json           the most tokens of a text
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    ConfigError,
    CorruptCheckpointError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.safetensors import SINGLE, SafetensorsFile, SafetensorsSource
from langchain_gemma_jax.models.configuration.config_fields import Fields
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object, read_objects, short
from langchain_gemma_jax.models.seams.tensor_source import Array, TensorSource

MODULES = "modules.json"
PROMPTS = "config_sentence_transformers.json"
LENGTH = "sentence_bert_config.json"
OF_MODULES = re.compile(r"\d+_[A-Za-z]+/(config\.json|model\.safetensors)")
"""Files that are read from the folders of the steps."""

_FOLDER = re.compile(r"[A-Za-z0-9_]{1,100}")
_WEIGHT = "linear.weight"
_LAYOUT = "the layout of Sentence Transformers, as google/embeddinggemma-300m has it"


@dataclass(frozen=True)
class Embedder:
    """The embedding model of a folder: its configuration and the folders of its matrices."""

    config: ModelConfig
    folders: tuple[str, ...]  # of its matrices

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of its matrices in ``FoldersSource``."""
        return tuple(f"{folder}/{_WEIGHT}" for folder in self.folders)


def read_embedder(path: Path, config: ModelConfig) -> Embedder:
    """Read the steps by which the Gemma of a folder embeds texts.

    Raises:
        CheckpointNotFoundError: the folder has no ``modules.json``.
        CorruptCheckpointError, ConfigError: a file is malformed.
        UnsupportedModelError: a step is not implemented.
    """
    if not os.path.lexists(path / MODULES):
        raise CheckpointNotFoundError(
            path,
            f"{MODULES} beside a Gemma that reads in both directions ({_LAYOUT})",
            "none",
            "Download the whole model: it says how one vector comes of a text's tokens.",
        )
    modules = [_module(path, each) for each in read_objects(real_file(path, MODULES), path / MODULES)]
    kinds = [kind for kind, _ in modules]
    dense = kinds.count("Dense")
    if kinds not in (
        ["Transformer", "Pooling", *["Dense"] * dense],
        ["Transformer", "Pooling", *["Dense"] * dense, "Normalize"],
    ):
        raise UnsupportedModelError(
            f"{path / MODULES}: expected Transformer, Pooling, any number of Dense, and Normalize or nothing; found "
            f"{short(', '.join(kinds))}."
        )
    folders = [folder for _, folder in modules]
    if folders[0] or not all(folders[1 : 2 + dense]):
        raise UnsupportedModelError(f"{path / MODULES}: expected the Gemma in the folder itself, found {folders}.")
    _check_pooling(path, folders[1])
    own = config.embedding or EmbeddingConfig()
    sizes, width = list(own.dense), own.width(config.width)
    for folder in folders[2 : 2 + dense]:
        outputs, inputs = _dense(path, folder)
        if inputs != width:
            raise ConfigError(f"{path / folder}: expected in_features={width}, found {inputs}.")
        sizes.append((outputs, inputs))
        width = outputs
    embedding = replace(own, dense=tuple(sizes), normed=kinds[-1] == "Normalize", prompts=_prompts(path))
    return Embedder(_bounded(path, config.replace(embedding=embedding)), tuple(folders[2 : 2 + dense]))


def refuse_other_layout(raw: Mapping[str, object], shown: Path) -> None:
    """Refuse an embedding model in another format than plain safetensors: its matrices would be ignored.

    Raises:
        UnsupportedModelError: the configuration is one of an embedding model.
    """
    if raw.get("use_bidirectional_attention") is True or str(raw.get("model_type")).startswith("embedding_gemma2"):
        raise UnsupportedModelError(f"{shown}: embedding models are read from plain safetensors, in {_LAYOUT}.")


class FoldersSource(TensorSource):
    """The tensors of a folder, and those of its inner folders with the inner folder's name as a prefix."""

    shared = True

    def __init__(self, path: Path, own: SafetensorsSource, inner: Mapping[str, SafetensorsSource]) -> None:
        self.location, self._sources = str(path), (own, *inner.values())
        self._where = {name: (own, name) for name in own.names()}
        for folder, source in inner.items():
            self._where |= {f"{folder}/{name}": (source, name) for name in source.names()}

    def names(self) -> Collection[str]:
        return self._where.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        source, inside = self._where[name]
        return source.shape(inside)

    def dtype(self, name: str) -> str:
        source, inside = self._where[name]
        return source.dtype(inside)

    def read(self, name: str) -> Array:
        source, inside = self._where[name]
        return source.read(inside)

    def read_into(self, name: str, target: Array) -> bool:
        source, inside = self._where[name]
        return source.read_into(inside, target)

    def read_rows(self, name: str) -> Iterator[Array]:
        source, inside = self._where[name]
        return source.read_rows(inside)

    def close(self) -> None:
        for source in self._sources:
            source.close()


def with_matrices(path: Path, own: SafetensorsSource, folders: Sequence[str]) -> TensorSource:
    """Return the open tensors of a Gemma together with those of its matrices. All are closed after an error."""
    with ExitStack() as opened:
        opened.callback(own.close)
        inner = {}
        for folder in folders:
            file = SafetensorsFile(path, f"{folder}/{SINGLE}")
            opened.callback(file.close)
            inner[folder] = SafetensorsSource(path / folder, [file])
        source = FoldersSource(path, own, inner)
        opened.pop_all()
    return source


def _module(path: Path, raw: Mapping[str, object]) -> tuple[str, str]:
    """Return the kind of one module, and its folder."""
    kind, folder = raw.get("type"), raw.get("path")
    if not isinstance(kind, str) or not isinstance(folder, str):
        raise CorruptCheckpointError(path / MODULES, "a type and a path of each module", short(raw))
    if folder and not _FOLDER.fullmatch(folder):
        raise UnsafeCheckpointError(path / MODULES, "modules in folders of this folder", short(folder))
    return kind.rpartition(".")[2], folder


def _check_pooling(path: Path, folder: str) -> None:
    raw = _inner(path, folder)
    if "pooling_mode" in raw:
        modes = [raw["pooling_mode"]]
    else:
        enabled = [name for name, value in raw.items() if name.startswith("pooling_mode_") and value is True]
        modes = ["mean" if name == "pooling_mode_mean_tokens" else name for name in enabled]
    if modes != ["mean"]:
        raise UnsupportedModelError(f"{path / folder}: expected the mean of all tokens, found {short(modes)}.")
    if raw.get("include_prompt", True) is not True:
        raise UnsupportedModelError(f"{path / folder}: expected include_prompt=true: the mean is of all tokens.")


def _dense(path: Path, folder: str) -> tuple[int, int]:
    """Return the outputs and inputs of one matrix."""
    f = Fields(_inner(path, folder), {}, str(path / folder))
    f.refuse("bias", "the matrices behind the mean have no biases")
    if not str(f.raw.get("activation_function", "Identity")).endswith("Identity"):
        f.refuse("activation_function", "the matrices behind the mean follow each other directly")
    return f.size("out_features", 0), f.size("in_features", 0)


def _inner(path: Path, folder: str) -> dict[str, object]:
    name = f"{folder}/config.json"
    return read_object(real_file(path, name), path / name)


def _prompts(path: Path) -> tuple[tuple[str, str], ...]:
    shown = path / PROMPTS
    if not os.path.lexists(shown):
        return ()
    prompts = Fields(read_object(real_file(path, PROMPTS), shown), {}, str(shown)).table("prompts")
    if not all(isinstance(text, str) for text in prompts.values()):
        raise ConfigError(f"{shown}: expected prompts to be texts by their names, found {short(dict(prompts))}.")
    return tuple((name, str(text)) for name, text in prompts.items())


def _bounded(path: Path, config: ModelConfig) -> ModelConfig:
    shown = path / LENGTH
    if not os.path.lexists(shown):
        return config
    f = Fields(read_object(real_file(path, LENGTH), shown), {}, str(shown))
    f.refuse("do_lower_case", "Gemma's vocabulary has capital letters")
    return config.replace(max_context=min(f.size("max_seq_length", config.max_context), config.max_context))
