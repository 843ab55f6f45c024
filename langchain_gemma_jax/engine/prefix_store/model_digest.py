"""A digest of a model's files, computed once and remembered while the files' sizes and times stay the same."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from langchain_gemma_jax.compile_cache.entry import seal, unseal
from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.private.folder import DamagedError, Folder
from langchain_gemma_jax.private.writing import write_whole

DIGESTS = "models"  # the file with the digests of all models
_LARGEST = 2**22
_MOST = 1000  # models whose digests are remembered


def model_digest(files: Unchanged, folder: Folder | None, *, thoroughly: bool = True) -> str | None:
    """Return a digest of a model's files. None: they have changed since it was loaded, or cannot be read.

    The first time, this takes as long as reading the files.

    Args:
        files: the files' stamps when the model was loaded.
        folder: the folder in which digests are remembered.
        thoroughly: compute the digest if it is not remembered. Otherwise the result is None then.
    """
    known = _remembered(folder)
    stamps = hashlib.sha256(repr((str(files.folder), sorted(files.stamps.items()))).encode()).hexdigest()
    try:
        if (found := known.get(stamps)) is None:
            if not thoroughly:
                return None
            found = files.digest()
        files.check()
    except (OSError, CheckpointError):
        return None
    if stamps not in known and folder is not None:
        _remember(folder, known | {stamps: found})
    return found


def _remembered(folder: Folder | None) -> dict[str, str]:
    try:
        if folder is not None:
            entries = json.loads(unseal(folder.read(DIGESTS, _LARGEST), DIGESTS).payload)
            return {str(stamps): str(digest) for stamps, digest in entries.items()}
    except (OSError, DamagedError, ValueError, AttributeError):
        pass  # the digests are computed again
    return {}


def _remember(folder: Folder, known: dict[str, str]) -> None:
    payload = json.dumps(dict(list(known.items())[-_MOST:])).encode()
    with suppress(OSError):  # the writer of prefixes warns about it
        write_whole(folder, DIGESTS, seal(DIGESTS, payload), payload)
