"""Opens an adapter by a caller's name for it: a folder or a GGUF file."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError, CheckpointNotFoundError, UnknownModelError
from langchain_gemma_jax.models.adapters.adapter import Adapter, Base
from langchain_gemma_jax.models.adapters.gguf_adapter import read_file
from langchain_gemma_jax.models.adapters.peft_folder import CONFIG, read_folder


def adapter_place(source: str | os.PathLike[str]) -> Path:
    """Return the folder or the file of an adapter.

    Raises:
        UnknownModelError: there is none.
    """
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    if not os.path.exists(path):  # noqa: PTH110
        raise UnknownModelError(
            f"adapter={os.fspath(source)!r}: expected a folder with {CONFIG}, or a GGUF file, found neither at "
            f"{path.absolute()}. One on the Hub is fetched with `hf download OWNER/NAME`, which says the folder."
        )
    return path


def open_adapter(source: str | os.PathLike[str], base: Base) -> Adapter:
    """Read an adapter for a model.

    Raises:
        UnknownModelError: there is none. CheckpointError: its files cannot be used, or are for another model.
        ConfigError, UnsupportedModelError: it is malformed, or asks for something that is not applied here.
    """
    path = adapter_place(source)
    try:
        if path.is_file():
            return read_file(path, base)
        if not (path / CONFIG).exists():
            ggufs = sorted(path.glob("*.gguf"))
            if len(ggufs) == 1:
                return read_file(ggufs[0], base)
            raise CheckpointNotFoundError(path, f"{CONFIG}, or one GGUF file", f"{len(ggufs)} GGUF files")
        return read_folder(path, base)
    except OSError as error:  # no permission, a broken disk
        raise CheckpointError(error.filename or path, "files that can be read", error.strerror or str(error)) from error
