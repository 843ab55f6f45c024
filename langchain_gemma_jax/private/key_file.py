"""A key file: a secret of bytes that nobody can guess, in a file that only its user can read."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.private_file import read_private

SHORTEST = 32  # bytes: what is shorter may be guessed
_LARGEST = 2**16


def read_key(path: str | os.PathLike[str], option: str, making: str = "Make one") -> bytes:
    """Return the key in a file: all of its bytes, but for blanks around them.

    Args:
        path: where it is.
        option: who names it, for messages.
        making: what to do where there is none, before the command that does it.

    Raises:
        InputError: there is no such file, others can read it, or it is too short.
    """
    file = Path(path).expanduser()
    make = f"{making}: (umask 077; head -c 32 /dev/urandom | base64 > {file})"
    data = read_private(file, option, f"a file with a key of up to {_LARGEST} bytes", _LARGEST, make)
    if len(key := data.strip()) < SHORTEST:
        raise InputError(f"{option}: expected {SHORTEST} bytes at least, found {len(key)} in {file}. {make}")
    return key
