"""Files with secrets: read only if no user can read them whom the owner did not choose."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from langchain_gemma_jax.errors import InputError


def read_private(file: Path, option: str, expected: str, largest: int, remedy: str = "") -> bytes:
    """Return the bytes of a private file.

    Args:
        file: the path.
        option: the option that names the file, for messages.
        expected: a description of the file, for messages.
        largest: the most bytes that it may have.
        remedy: advice for when there is no such file.

    Raises:
        InputError: there is no such file, it is something else or larger, or others can read it.
    """
    advice = f" {remedy}" if remedy else ""
    try:
        with file.open("rb") as opened:
            facts = os.fstat(opened.fileno())
            data = opened.read(largest + 1)
    except OSError as error:
        raise InputError(f"{option}: {file} cannot be read: {error.strerror or error}.{advice}") from error
    if not stat.S_ISREG(facts.st_mode) or len(data) > largest:
        raise InputError(f"{option}: expected {expected}, found {file}.{advice}")
    # In Kubernetes a secret's file belongs to root and to the pod's group: root has chosen who reads it.
    own = stat.S_IRGRP if facts.st_uid == 0 != os.geteuid() else 0
    if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO) & ~own:
        mode = stat.S_IMODE(facts.st_mode)
        raise InputError(f"{option}: others can read {file} (mode {mode:04o}). Do: chmod 600 {file}")
    return data
