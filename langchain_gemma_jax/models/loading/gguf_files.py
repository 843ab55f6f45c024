"""A Gemma in a GGUF file, whose matrices stay in the file's formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.encoders.mmproj_file import mmproj_encoders
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.gguf.opening import open_gguf, sampling_defaults
from langchain_gemma_jax.models.loading.find import SourceFiles
from langchain_gemma_jax.models.loading.opened_gemma import dtype_of_unpacked
from langchain_gemma_jax.models.packed.from_file import BlockCheckpoint
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.model_media import ModelMedia
from langchain_gemma_jax.private.freed_memory import give_back


class GgufFiles:
    """A GGUF file, with the facts that are stored with it, such as Ollama's sampling defaults."""

    def __init__(self, path: Path, source: SourceFiles) -> None:
        self._path, self._opened, self._source = path, open_gguf(path), source
        self._vocabulary: tuple[Tokenizer, bytes] | None = None

    @property
    def checkpoint(self) -> BlockCheckpoint:
        return self._opened.checkpoint

    def default_dtype(self, platform: str) -> str:
        stored = self._opened.dtype
        if stored is None:
            return dtype_of_unpacked(platform)
        return "float32" if stored == "float16" else stored

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        if self._vocabulary is None:
            metadata = self._opened.metadata
            self._vocabulary = gguf_tokenizer(metadata, self._path, self.checkpoint.config.vocab_size)
            metadata.forget_strings()  # to make room for the weights
            give_back()
        return self._vocabulary

    def generation_defaults(self) -> Mapping[str, object]:
        return {**sampling_defaults(self._opened.metadata), **self._source.defaults}

    def chat_format(self, tokenizer: Tokenizer) -> ChatFormat:
        own = self._opened.chat_format(tokenizer.control_tokens)
        return replace(own, has_template=own.has_template or self._source.templated)

    def encoders(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:  # noqa: ARG002  they have their own
        return mmproj_encoders(self._path, self._source.encoders, self.checkpoint.config, tokenizer)
