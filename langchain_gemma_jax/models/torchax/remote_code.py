"""Code in a model's folder: run only if the caller allows it, and then with a warning."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from langchain_gemma_jax.errors import InputError, UnsafeCheckpointError
from langchain_gemma_jax.models.checkpoint.folder import CONFIG


class RemoteCodeWarning(UserWarning):
    """Code that came with a model is run in this process, with all rights of the process."""


@dataclass(frozen=True)
class RemoteCode:
    """Python files of a folder that the caller trusts, with a digest of their content."""

    folder: str
    digest: str


def code_in(folder: Path, raw: Mapping[str, object], *, known: bool, trusted: bool) -> RemoteCode | None:
    """Return the model's own code. None: it needs none, and code in its folder is not read.

    Args:
        folder: the model's folder.
        raw: its ``config.json``.
        known: True if transformers itself has the model's kind.
        trusted: True if the caller allows the code to be run.

    Raises:
        UnsafeCheckpointError: it needs code that is not trusted. InputError: trusted, and there is no code.
    """
    named = bool(raw.get("auto_map"))
    if trusted and not named:
        raise InputError("trust_remote_code=True: the model has no code of its own (auto_map). Leave it out.")
    if not named or (known and not trusted):
        return None
    files = sorted(folder.glob("*.py"))
    if not trusted:
        raise UnsafeCheckpointError(
            folder / CONFIG,
            "a model whose code is a part of transformers",
            f"auto_map, which names Python files in the folder ({len(files)} are there) that would have to be run",
            "Nothing of it was run. There may be a version of the model for transformers without such files; or read "
            "them, and pass trust_remote_code=True.",
        )
    listed = ", ".join(path.name for path in files)
    warnings.warn(
        f"trust_remote_code=True: {folder} has its own code ({listed}), which is run in this process now, with all "
        "that this process may read, write and send.",
        RemoteCodeWarning,
        stacklevel=2,
    )
    digest = hashlib.sha256(b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in files)).hexdigest()
    return RemoteCode(str(folder), digest)
