"""Opens an adapter by a caller's name for it: a folder, a GGUF file, or an id on the Hub."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ModelNotOnHubError,
    OfflineError,
    UnknownModelError,
)
from langchain_gemma_jax.models.adapters.adapter import Adapter, Base
from langchain_gemma_jax.models.adapters.gguf_adapter import read_file
from langchain_gemma_jax.models.adapters.peft_folder import read_folder
from langchain_gemma_jax.models.checkpoint.folder import ADAPTER
from langchain_gemma_jax.stopping import Stop


@dataclass(frozen=True)
class AdapterFiles:
    """The folder or the file of an adapter."""

    path: Path
    name: str | None = None  # as the Hub has it. None: that of the folder or of the file


def find_adapter(source: str | os.PathLike[str], *, token: str | None = None, stop: Stop | None = None) -> AdapterFiles:
    """Find an adapter's folder or file, and download it if it is on the Hub and not in the local cache.

    Raises:
        UnknownModelError: there is no such folder or file, and this is no id. HubError: the download failed.
    """
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    if os.path.exists(path):  # noqa: PTH110
        return AdapterFiles(path.resolve())
    from langchain_gemma_jax.models.hub.download import download
    from langchain_gemma_jax.models.hub.hub_request import is_model_id

    adapter_id, _, file = source.partition(":") if isinstance(source, str) else ("", "", "")
    if not is_model_id(adapter_id):
        raise UnknownModelError(
            f"adapter={os.fspath(source)!r}: expected a folder with {ADAPTER}, a GGUF file, or an id on the Hub, as in "
            f"'organization/name', found neither at {path.absolute()}."
        )
    try:
        fetched = download(adapter_id, token=token, stop=stop, file=file or None, is_adapter=True)
    except (ModelNotOnHubError, OfflineError) as error:
        error.add_note(f"If a folder or file was meant: there is none at {path.absolute()}.")
        raise
    return AdapterFiles(fetched, str(source))


def open_adapter(files: AdapterFiles, base: Base) -> Adapter:
    """Read an adapter for a model.

    Raises:
        CheckpointError: its files cannot be used, or are for another model.
        ConfigError, UnsupportedModelError: it is malformed, or asks for something that is not applied here.
    """
    path = files.path
    try:
        found = _read(path, base)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(error.filename or path, "files that can be read", error.strerror or str(error)) from error
    return found if files.name is None else replace(found, name=files.name)


def _read(path: Path, base: Base) -> Adapter:
    if path.is_file():
        return read_file(path, base)
    if not (path / ADAPTER).exists():
        ggufs = sorted(path.glob("*.gguf"))
        if len(ggufs) == 1:
            return read_file(ggufs[0], base)
        raise CheckpointNotFoundError(path, f"{ADAPTER}, or one GGUF file", f"{len(ggufs)} GGUF files")
    return read_folder(path, base)
