"""A Gemma in a GGUF file: opened, and everything checked but its weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import choose, text_models
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat, has_images_apart
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_config import EMBED, config_from_gguf
from langchain_gemma_jax.models.gguf.gguf_names import gguf_naming
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.packed.from_file import BlockCheckpoint

_SAMPLING = {
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}
_WHOLE = ("top_k",)
_TEMPLATE = "tokenizer.chat_template"
_FORMATS = {"<|turn>": "gemma4", "<start_function_call>": "function_gemma", "<start_of_turn>": "gemma"}
"""Which format a marker belongs to. Templates of the later ones may have an earlier one's markers too."""


@dataclass(frozen=True)
class OpenedFile:
    """A file's model, open, and what else the file says of it."""

    checkpoint: BlockCheckpoint
    metadata: Metadata

    @property
    def dtype(self) -> str | None:
        """The dtype of the embedding, if it is dense. None: it is packed."""
        found = self.checkpoint.tensors.dtype(EMBED)
        return found if found in {"float32", "bfloat16", "float16"} else None

    def chat_format(self, control_tokens: Collection[str]) -> ChatFormat:
        """Return the chat format that the file's template writes, if the vocabulary has what that needs.

        A template is a program. It is searched for markers, as any text, and never run.
        """
        template = self.metadata.text(_TEMPLATE, "")
        named = (name for marker, name in _FORMATS.items() if marker in template and marker in control_tokens)
        return ChatFormat(next(named, None), bool(template), images_apart=has_images_apart(template))


def open_gguf(path: Path) -> OpenedFile:
    """Open a file. Headers are read and checked; no tensor of a weight is.

    Raises:
        CheckpointError: the file cannot be used. The subclass says why.
        ConfigError, UnsupportedModelError: its metadata cannot be understood, or describe another kind of model.
    """
    try:
        source = open_source(path)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(
            error.filename or path, "a file that can be read", error.strerror or str(error)
        ) from error
    try:
        metadata = Metadata(source.header, source.location)
        config = config_from_gguf(metadata, source)
        naming = gguf_naming(config, source.names(), source.location)
        return OpenedFile(BlockCheckpoint(config, source, naming), metadata)
    except BaseException:
        source.close()
        raise


def sampling_defaults(metadata: Metadata) -> Mapping[str, object]:
    """The sampling that a file's authors recommend, in the words of a ``generation_config.json``."""
    found: dict[str, object] = {}
    for ours, theirs in _SAMPLING.items():
        name = f"general.sampling.{theirs}"
        value = metadata.whole(name) if ours in _WHOLE else metadata.number(name)
        if value is not None:
            found[ours] = value
    return {"do_sample": True, **found} if found else {}


def only_gguf(folder: Path) -> Path | None:
    """The GGUF file of a folder that has no other kind of model. None: it has none.

    Raises:
        CheckpointNotFoundError: it has several models, none of them the usual one.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return None
    if not text_models(names) or any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return None
    return folder / choose(names, None, str(folder))[0]
