"""The pieces of a vocabulary, and the decoding of their names into bytes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import sub
from typing import overload

SPACE = "\u2581"  # a space, in SentencePiece's notation
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Pieces(Sequence[bytes]):
    """The pieces of a vocabulary by id, end to end in one string: a seventh of the memory of a tuple of them."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.joined = b"".join(pieces)
        self.bounds = array("I", accumulate(map(len, pieces), initial=0))  # in ``joined``

    @property
    def longest(self) -> int:
        """The bytes of the longest piece."""
        return int(max(map(sub, self.bounds[1:], self.bounds)))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError(index)
        bounds = self.bounds
        return self.joined[bounds[index] : bounds[index + 1]]

    def __iter__(self) -> Iterator[bytes]:
        joined = self.joined
        return (joined[begin:end] for begin, end in pairwise(self.bounds))


def spaced_piece(name: str) -> bytes:
    """Return the bytes of a name in SentencePiece's notation: ``▁`` is a space, ``<0x0A>`` is the byte 10."""
    if byte := _BYTE.fullmatch(name):
        return bytes.fromhex(byte[1])
    return name.replace(SPACE, " ").encode()


def spaced_pieces(names: Sequence[str]) -> list[bytes]:
    """Return ``spaced_piece`` of each name, at once: one by one, a Gemma's 262,144 take a quarter of a second."""
    joined = "\0".join(names)
    if joined.count("\0") >= len(names):  # a name contains that character
        return [spaced_piece(name) for name in names]
    pieces = joined.replace(SPACE, " ").encode().split(b"\0")
    for index, name in enumerate(names):
        if name.startswith("<0x"):
            pieces[index] = spaced_piece(name)
    return pieces


def byte_level_piece(name: str) -> bytes:
    """Return the bytes of a name in GPT-2's notation: one character per byte. Other names are returned in UTF-8."""
    try:
        return bytes(_BYTE_LEVEL[character] for character in name)
    except KeyError:
        return name.encode()


def _byte_level() -> dict[str, int]:
    """Return GPT-2's table: visible Latin-1 characters are their own byte, characters from 256 on are the others."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = (byte for byte in range(256) if byte not in visible)
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_LEVEL = _byte_level()
