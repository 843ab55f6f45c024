"""Key files: a file that only its user can read, with secret bytes that cannot be guessed."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.private_file import read_private

SHORTEST = 32  # bytes: a shorter key might be guessed
_LARGEST = 2**16


def read_key(path: str | os.PathLike[str], option: str, making: str = "Make one") -> bytes:
    """Return the key in a file: its bytes without surrounding white space.

    Args:
        path: the file.
        option: the option that names the file, for messages.
        making: advice for when there is no key; the command that makes one follows it in the message.

    Raises:
        InputError: there is no such file, others can read it, or it is too short.
    """
    file = Path(path).expanduser()
    make = f"{making}: (umask 077; head -c 32 /dev/urandom | base64 > {file})"
    data = read_private(file, option, f"a file with a key of up to {_LARGEST} bytes", _LARGEST, make)
    if len(key := data.strip()) < SHORTEST:
        raise InputError(f"{option}: expected {SHORTEST} bytes at least, found {len(key)} in {file}. {make}")
    return key
