"""Opens a Gemma in a GGUF file, and checks everything but its weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import choose, text_models
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat, has_images_apart
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_config import EMBED, config_from_gguf
from langchain_gemma_jax.models.gguf.gguf_names import gguf_naming
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.header import KIND
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
"""The format of each marker, newest first: templates of newer formats may have markers of older ones too."""


@dataclass(frozen=True)
class OpenedFile:
    """A file's open model, and the file's metadata."""

    checkpoint: BlockCheckpoint
    metadata: Metadata

    @property
    def dtype(self) -> str | None:
        """The dtype of the embedding, if it is dense. None: it is packed."""
        dtype = self.checkpoint.tensors.dtype(EMBED)
        return dtype if dtype in {"float32", "bfloat16", "float16"} else None

    def chat_format(self, control_tokens: Collection[str]) -> ChatFormat:
        """Return the chat format of the file's template, if the vocabulary has that format's control tokens.

        A template is a program. It is searched for markers as plain text, and never run.
        """
        template = self.metadata.text(_TEMPLATE, "")
        named = (name for marker, name in _FORMATS.items() if marker in template and marker in control_tokens)
        return ChatFormat(next(named, None), bool(template), images_apart=has_images_apart(template))


def open_gguf(path: Path) -> OpenedFile:
    """Open a file. Headers are read and checked, but no weights.

    Raises:
        CheckpointError: the file cannot be used. The subclass says why.
        ConfigError, UnsupportedModelError: its metadata are malformed, or describe another kind of model.
    """
    try:
        source = open_source(path)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(
            error.filename or path, "a file that can be read", error.strerror or str(error)
        ) from error
    try:
        metadata = Metadata(source.header, source.location)
        _refuse_adapter(metadata)
        config = config_from_gguf(metadata, source)
        naming = gguf_naming(config, source.names(), source.location)
        return OpenedFile(BlockCheckpoint(config, source, naming), metadata)
    except BaseException:
        source.close()
        raise


def _refuse_adapter(metadata: Metadata) -> None:
    if metadata.text(KIND, "model") == "adapter":
        raise UnsupportedModelError(
            f"{metadata.location}: expected a model, found an adapter for a {metadata.architecture or 'model'}. Give "
            "its base as the model, and this file as adapter=...."
        )


def sampling_defaults(metadata: Metadata) -> Mapping[str, object]:
    """Return the sampling settings that a file recommends, with the names of a ``generation_config.json``."""
    settings: dict[str, object] = {}
    for ours, theirs in _SAMPLING.items():
        name = f"general.sampling.{theirs}"
        value = metadata.whole(name) if ours in _WHOLE else metadata.number(name)
        if value is not None:
            settings[ours] = value
    return {"do_sample": True, **settings} if settings else {}


def only_gguf(folder: Path) -> Path | None:
    """Return the GGUF file of a folder without safetensors. None: it has no GGUF file, or has safetensors.

    Raises:
        CheckpointNotFoundError: it has several models, none of them of the usual quantization.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return None
    if not text_models(names) or any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return None
    return folder / choose(names, None, str(folder))[0]
