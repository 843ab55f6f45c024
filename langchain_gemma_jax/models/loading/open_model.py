"""The first step of loading: find a model's files, download them if necessary, and open them."""

from __future__ import annotations

import os

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.gguf.opening import only_gguf
from langchain_gemma_jax.models.loading.check_asked import check_asked
from langchain_gemma_jax.models.loading.find import SourceFiles, find
from langchain_gemma_jax.models.loading.folder_files import FolderFiles
from langchain_gemma_jax.models.loading.gguf_files import GgufFiles
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import Opened
from langchain_gemma_jax.models.loading.opened_gemma import OpenedGemma
from langchain_gemma_jax.stopping import Stop


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
    return OpenedGemma(source.name, files, stored)


def open_again(like: Model) -> Opened:
    """Open the files that a model was read from before. The caller closes them.

    Raises:
        CheckpointError: the files cannot be used. InputError: the model was not read from files.
    """
    if like.read_from is None:
        raise InputError(f"{like.name!r} was not read from files, and cannot be read again.")
    return open_model(SourceFiles(like.read_from.files.folder, like.name, by_torch=like.architecture.gemma is None))
