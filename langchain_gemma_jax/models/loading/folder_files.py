"""A Gemma in a folder: safetensors in Hugging Face's layout, or an Orbax checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.generation_defaults import generation_defaults_in
from langchain_gemma_jax.models.checkpoint.quantised.quantised_folder import open_quantised, quantisation_of
from langchain_gemma_jax.models.checkpoint.read_template import images_apart_in
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.encoders.media_files import media_in
from langchain_gemma_jax.models.loading.opened_gemma import dtype_of_unpacked
from langchain_gemma_jax.models.loading.place import default_dtype
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.vision.model_media import ModelMedia


class FolderFiles:
    """The files of a Gemma in a folder."""

    def __init__(self, folder: Path) -> None:
        quantisation = quantisation_of(folder)
        self.folder = folder
        self.checkpoint: Checkpoint[Any] = (
            open_folder(folder) if quantisation is None else open_quantised(folder, quantisation)
        )

    def default_dtype(self, platform: str) -> str:
        if self.checkpoint.tables_packed:
            return dtype_of_unpacked(platform)
        config, tensors, naming = self.checkpoint
        return default_dtype(tensors, naming, config)

    def tokenizer(self) -> tuple[Tokenizer, bytes]:
        return load_tokenizer(self.folder), tokenizer_digest(self.folder)

    def generation_defaults(self) -> Mapping[str, object]:
        return generation_defaults_in(self.folder)

    def chat_format(self, tokenizer: Tokenizer) -> ChatFormat:  # noqa: ARG002  folders leave the rest to the vocabulary
        return ChatFormat(images_apart=images_apart_in(self.folder))

    def encoders(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
        config, tensors, _ = self.checkpoint
        if tensors.tower_shapes:
            from langchain_gemma_jax.models.encoders.orbax_media import orbax_media

            return orbax_media(self.folder, tensors, config, tokenizer, files)
        return media_in(self.folder, config, tokenizer, files)
