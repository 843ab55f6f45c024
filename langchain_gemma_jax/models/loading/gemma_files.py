"""A Gemma's files: its stored weights, and what else the files say, read when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.model_media import ModelMedia


class GemmaFiles(Protocol):
    """The files of one Gemma, whatever their format."""

    @property
    def checkpoint(self) -> Checkpoint[Any]:
        """The stored weights."""
        ...

    def default_dtype(self, platform: str) -> str:
        """Return the dtype that products are taken in if nothing else is asked for."""
        ...

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        """Return the tokenizer, and a digest of it."""
        ...

    def generation_defaults(self) -> Mapping[str, object]:
        """Return what the authors recommend for generating."""
        ...

    def chat_format(self, tokenizer: Tokenizer) -> ChatFormat:
        """Return what the files say of the chat format."""
        ...

    def encoders(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
        """Return the encoders of pictures and sounds. None: it reads text alone."""
        ...


def dtype_of_unpacked(platform: str) -> str:
    """Return the dtype of products with packed matrices: XLA:CPU is faster in float32, and loses nothing so."""
    return "float32" if platform == "cpu" else "bfloat16"
