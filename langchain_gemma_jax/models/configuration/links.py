"""The resolved path of a file in a model's folder.

A folder from an untrusted place may hold links. A link that leads out of the folder could make us read,
and answer from, a private file of this machine: it is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointNotFoundError, UnsafeCheckpointError

_CONTENT_HASH = re.compile(r"[0-9a-f]{64}")


def real_file(folder: Path, name: str) -> Path:
    """Return the regular file at ``folder / name``, with every link followed.

    Raises:
        UnsafeCheckpointError: it lies outside the folder, and not where the Hub's own cache keeps contents.
        CheckpointNotFoundError: there is no such file.
    """
    shown = folder / name
    root, real = Path(os.path.realpath(folder)), Path(os.path.realpath(shown))
    if not real.is_relative_to(root) and not _is_hub_content(root, real):
        raise UnsafeCheckpointError(
            shown,
            "a file inside the model's folder",
            f"a link to {real}",
            "If you trust that file, copy it into the folder.",
        )
    if not real.is_file():
        found = f"a link to {real}, which is not there" if shown.is_symlink() else _what_is_there(real)
        raise CheckpointNotFoundError(shown, "a file", found, "Download the model again, or the file that is missing.")
    return real


def _is_hub_content(root: Path, real: Path) -> bool:
    """Return True if ``root`` is a snapshot in the Hub's cache, and ``real`` is in that cache's store of contents.

    <cache>/models--org--name/snapshots/<revision>/file  →  <cache>/models--org--name/blobs/<etag>
                                                         →  <cache>/blobs/<2 digits>/<hash>, shared by all models
    """
    snapshots, repository = root.parent, root.parent.parent
    if snapshots.name != "snapshots" or not repository.name.startswith("models--"):
        return False
    if real.parent == repository / "blobs":
        return True
    shared = repository.parent / "blobs" / real.name[:2]
    return real.parent == shared and _CONTENT_HASH.fullmatch(real.name) is not None


def _what_is_there(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "something that is not a regular file" if path.exists() else "nothing"
