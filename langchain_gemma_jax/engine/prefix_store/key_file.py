"""The key that prefixes are encrypted with, from a file that only its user can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from langchain_gemma_jax.errors import InputError

SHORTEST = 32  # bytes: what is shorter may be guessed
_LARGEST = 2**16


def read_key(path: str | os.PathLike[str]) -> bytes:
    """Return the key in a file: all of its bytes, but for blanks around them.

    Raises:
        InputError: there is no such file, others can read it, or it is too short.
    """
    file = Path(path).expanduser()
    make = f"Make one: (umask 077; head -c 32 /dev/urandom | base64 > {file})"
    try:
        with file.open("rb") as opened:
            facts = os.fstat(opened.fileno())
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"prefix_key_file: {file} cannot be read: {error.strerror or error}. {make}") from error
    if not stat.S_ISREG(facts.st_mode) or len(data) > _LARGEST:
        raise InputError(f"prefix_key_file: expected a file with a key of up to {_LARGEST} bytes, found {file}. {make}")
    if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = stat.S_IMODE(facts.st_mode)
        raise InputError(f"prefix_key_file: others can read {file} (mode {mode:04o}). Do: chmod 600 {file}")
    if len(key := data.strip()) < SHORTEST:
        raise InputError(f"prefix_key_file: expected {SHORTEST} bytes at least, found {len(key)} in {file}. {make}")
    return key
