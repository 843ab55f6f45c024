"""An entry: a compiled program, with a digest that shows that the file is as it was written.

    magic (8 bytes) | SHA-256 of all that follows (32) | length of the header (4) | header (JSON) | payload

Every bit of the file is compared or hashed, so flipped bits and truncated files are detected. The digest protects
against disks and killed processes; it is no signature. A user who can write to the folder can run code here, so
``private/folder.py`` makes sure that it is ours alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from langchain_gemma_jax.private.folder import DamagedError

MAGIC = b"GJXCE1\n\0"
_DIGEST = slice(len(MAGIC), len(MAGIC) + 32)
_START = _DIGEST.stop + 4  # of the header
HEAD = 65536  # bytes at the beginning of a file, enough for any header that is written here


class Entry(NamedTuple):
    """A compiled program, with its name and label."""

    name: str
    """The key: a digest of everything that the program depends on."""
    label: str
    """A description for people."""
    seconds: float
    """The time that its compile took, which each hit saves."""
    payload: bytes


def file_of(name: str) -> str:
    """Return the file name of an entry. The entry's name may have any characters."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40] + ".entry"


def seal(name: str, payload: bytes, *, label: str = "", seconds: float = 0.0) -> bytes:
    """Return the bytes that go before the payload in the file."""
    header = json.dumps({"name": name, "label": label, "seconds": seconds}).encode()
    rest = len(header).to_bytes(4, "big") + header
    digest = hashlib.sha256(rest)
    digest.update(payload)
    return MAGIC + digest.digest() + rest


def unseal(data: bytes, name: str | None = None) -> Entry:
    """Return the entry in the bytes of a file, after a check of its digest.

    Args:
        data: the whole file. The result is cut from these bytes; nothing is read twice.
        name: the name that the entry must have, if it is known.

    Raises:
        DamagedError: the bytes differ from what was written, or it is the entry of another name.
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
    """Return name, label and seconds from the first ``HEAD`` bytes of a file. They are not verified: for listings only.

    Raises:
        DamagedError: there is no valid header.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("it does not begin as an entry does")
    return _header(data)


def digest_of(data: bytes) -> str:
    """Return the digest that is written in an entry, in hexadecimal."""
    return data[_DIGEST].hex()


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[_START - 4 : _START], "big")


def _header(data: bytes) -> tuple[str, str, float]:
    try:
        header = json.loads(data[_START : _START + _header_length(data)])
        return str(header["name"]), str(header["label"]), float(header["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError("its header cannot be read") from error
