"""The first step of loading: find a model's files, a folder or a GGUF file, download and open them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.generation_defaults import generation_defaults_in
from langchain_gemma_jax.models.checkpoint.picture_judge import picture_judge_in
from langchain_gemma_jax.models.checkpoint.quantized.quantized_folder import open_quantized, quantization_of
from langchain_gemma_jax.models.checkpoint.read_template import images_apart_in
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.encoders.media_files import media_in
from langchain_gemma_jax.models.encoders.mmproj_file import mmproj_encoders
from langchain_gemma_jax.models.gguf.gguf_tokenizer import gguf_tokenizer
from langchain_gemma_jax.models.gguf.opening import only_gguf, open_gguf, sampling_defaults
from langchain_gemma_jax.models.loading.check_asked import check_asked
from langchain_gemma_jax.models.loading.drafters import AskedDrafter
from langchain_gemma_jax.models.loading.find import SourceFiles, find
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import Opened
from langchain_gemma_jax.models.loading.opened_gemma import OpenedGemma, dtype_of_unpacked
from langchain_gemma_jax.models.loading.place import default_dtype
from langchain_gemma_jax.models.packed.from_file import BlockCheckpoint
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.vision.model_media import ModelMedia
from langchain_gemma_jax.private.freed_memory import give_back
from langchain_gemma_jax.stopping import Stop


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


class FolderFiles:
    """The files of a Gemma in a folder."""

    def __init__(self, folder: Path) -> None:
        quantization = quantization_of(folder)
        self.folder = folder
        self.checkpoint: Checkpoint[Any] = (
            open_folder(folder) if quantization is None else open_quantized(folder, quantization)
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
        return ChatFormat(images_apart=images_apart_in(self.folder), judge=picture_judge_in(self.folder))

    def encoders(self, tokenizer: Tokenizer, files: Unchanged) -> ModelMedia | None:
        config, tensors, _ = self.checkpoint
        if tensors.tower_shapes:
            from langchain_gemma_jax.models.encoders.orbax_media import orbax_media

            return orbax_media(self.folder, tensors, config, tokenizer, files)
        return media_in(self.folder, config, tokenizer, files)


class ModelFiles:
    """Opens the files of models: by name the first time, later by the model that was read from them."""

    def open(self, source: str | os.PathLike[str], how: HowToLoad, stop: Stop | None = None) -> Opened:
        """Find a model's files, download them if necessary, and open them. The caller closes them."""
        check_asked(source, how)
        return open_source(source, how, stop=stop)

    def open_again(self, like: Model) -> Opened:
        """Open the files that a model was read from before. The caller closes them."""
        return open_again(like)


def open_source(
    source: str | os.PathLike[str], how: HowToLoad, *, progress: bool | None = None, stop: Stop | None = None
) -> Opened:
    """Find a model's files, download them if necessary, and open them. The caller closes them.

    Args:
        source: as for ``load``.
        how: the caller's options.
        progress: True to draw a progress bar of a download. None: if standard error is a terminal.
        stop: lets another thread end a download.

    Raises:
        CheckpointError: the files cannot be used. HubError: the download failed.
    """
    return open_model(find(source, how, progress=progress, stop=stop))


def open_model(source: SourceFiles) -> Opened:
    """Open a model's files. Headers are read and checked, but no weights. The caller closes them.

    Raises:
        CheckpointError: the files cannot be used. The subclass says why.
    """
    if source.by_torch:
        from langchain_gemma_jax.models.loading.opened_torch import OpenedTorch

        return OpenedTorch(source)
    files = Unchanged.now(source.path)
    file = source.path if source.path.is_file() else only_gguf(source.path)
    stored = FolderFiles(source.path) if file is None else GgufFiles(file, source)
    try:
        return OpenedGemma(source.name, files, stored, source.drafter)
    except BaseException:
        stored.checkpoint.tensors.close()
        raise


def open_again(like: Model) -> Opened:
    """Open the files that a model was read from before. The caller closes them.

    Raises:
        CheckpointError: the files cannot be used. InputError: the model was not read from files.
    """
    if like.read_from is None:
        raise InputError(f"{like.name!r} was not read from files, and cannot be read again.")
    drafter = None if like.drafter is None else AskedDrafter(like.drafter.folder, named=True)
    by_torch = like.architecture.gemma is None
    return open_model(SourceFiles(like.read_from.files.folder, like.name, drafter=drafter, by_torch=by_torch))
