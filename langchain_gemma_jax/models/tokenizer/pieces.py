"""How vocabularies write bytes into the names of their pieces."""

from __future__ import annotations

import re
from collections.abc import Sequence

SPACE = "\u2581"  # stands for a space, in SentencePiece's way of writing
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def spaced_piece(name: str) -> bytes:
    """The bytes behind a name in SentencePiece's way: ``▁`` is a space, ``<0x0A>`` is the byte 10."""
    if byte := _BYTE.fullmatch(name):
        return bytes.fromhex(byte[1])
    return name.replace(SPACE, " ").encode()


def spaced_pieces(names: Sequence[str]) -> list[bytes]:
    """``spaced_piece`` of each. A Gemma has 262,144 of them, and one by one they take a quarter of a second."""
    joined = "\0".join(names)
    if joined.count("\0") >= len(names):  # a name has that character itself
        return [spaced_piece(name) for name in names]
    pieces = joined.replace(SPACE, " ").encode().split(b"\0")
    for index, name in enumerate(names):
        if name.startswith("<0x"):
            pieces[index] = spaced_piece(name)
    return pieces


def byte_level_piece(name: str) -> bytes:
    """The bytes behind a name in GPT-2's way: each character is a byte. A name with any other character is as it is."""
    try:
        return bytes(_BYTE_LEVEL[character] for character in name)
    except KeyError:
        return name.encode()


def _byte_level() -> dict[str, int]:
    """Bytes that Latin-1 shows as a visible character are that character, the others the characters from 256 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = (byte for byte in range(256) if byte not in visible)
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_LEVEL = _byte_level()
