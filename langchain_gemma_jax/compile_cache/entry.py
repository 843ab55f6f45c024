"""An entry: a compiled program, and the proof that it is the one that was written.

    magic (8 bytes) | SHA-256 of all that follows (32) | length of the header (4) | header (JSON) | payload

Every bit of the file is compared or hashed, so no flip and no cut goes unseen. The digest finds what disks and killed
processes do; it is no signature. Whoever can write to the folder can run code here, so ``folder.py`` has it to
ourselves.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from langchain_gemma_jax.private.folder import DamagedError

MAGIC = b"GJXCE1\n\0"
_DIGEST = slice(len(MAGIC), len(MAGIC) + 32)
_START = _DIGEST.stop + 4  # of the header
HEAD = 65536  # bytes that have all of a header, unless it is a monster


class Entry(NamedTuple):
    """What was kept under a name."""

    name: str
    """What it was asked for by: a digest of all that the program depends on."""
    label: str
    """What it is, for people."""
    seconds: float
    """What its compile took, and each hit saves."""
    payload: bytes


def file_of(name: str) -> str:
    """The file name of an entry, whatever characters its name has."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40] + ".entry"


def seal(name: str, payload: bytes, *, label: str = "", seconds: float = 0.0) -> bytes:
    """What has to stand before the payload. The file is the two of them."""
    header = json.dumps({"name": name, "label": label, "seconds": seconds}).encode()
    rest = len(header).to_bytes(4, "big") + header
    digest = hashlib.sha256(rest)
    digest.update(payload)
    return MAGIC + digest.digest() + rest


def unseal(data: bytes, name: str | None = None) -> Entry:
    """The entry in the bytes of a file.

    Args:
        data: the whole file. What is returned was cut from these very bytes: nothing is read twice.
        name: what the entry has to be called, if that is known.

    Raises:
        DamagedError: a bit is not as it was written, or it is another entry.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("it does not begin as an entry does")
    if hashlib.sha256(memoryview(data)[_DIGEST.stop :]).digest() != data[_DIGEST]:
        raise DamagedError("its digest does not match")
    entry = Entry(*_header(data), data[_START + _header_length(data) :])
    if name not in {None, entry.name}:
        raise DamagedError("it is the entry of another name")
    return entry


def peek(data: bytes) -> tuple[str, str, float]:
    """Name, label and seconds from the first ``HEAD`` bytes of a file, unproven: for a listing, and for nothing else.

    Raises:
        DamagedError: it is no header.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("it does not begin as an entry does")
    return _header(data)


def digest_of(data: bytes) -> str:
    """The digest that an entry states, in hexadecimal."""
    return data[_DIGEST].hex()


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[_START - 4 : _START], "big")


def _header(data: bytes) -> tuple[str, str, float]:
    try:
        header = json.loads(data[_START : _START + _header_length(data)])
        return str(header["name"]), str(header["label"]), float(header["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError("its header cannot be read") from error
