"""The header of a GGUF file, checked before anything large is allocated.

A file is "GGUF", a version, two counts, metadata (names with typed values), a table of tensors, and the tensors, each
at a multiple of the alignment. Nothing in it is believed. This reader is our own, though the format's authors publish
one: theirs maps the file, so that one cut off meanwhile ends the process, makes an object for each of a vocabulary's
million strings, which takes seconds and gigabytes, and checks neither that tensors lie inside the file nor that they
do not overlap.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.tensor_types import TYPES, TensorType

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_BYTES = 48 << 20  # of a header: a Gemma's vocabulary with its merges takes 20 MB
MOST_ENTRIES = 1 << 16  # of the metadata, and of the table of tensors: a Gemma has below 2,000
MOST_NAME = 1 << 10  # bytes
MOST_DIMENSIONS = 4
LARGEST_ALIGNMENT = 1 << 20
ARCHITECTURE, FIRST_ENTRIES = "general.architecture", 8  # writers put it first
_LIMIT = 1 << 63
_PIECE = 1 << 20  # bytes that are read at a time
_WORTH_IT, _SOME = 64, 1 << 12  # strings: as many as pay for looking at a piece's bytes, and else go one by one
_INCOMPLETE = "The download is probably incomplete."

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY, _BOOL, _FLOAT32 = 8, 9, 7, 6


class Strings:
    """A long list of strings, which are made when they are asked for.

    In the file there stand the eight bytes of its length before each, the last of which is 0 for any string that fits.
    """

    def __init__(self, path: Path, header: bytearray, place: slice, begins: npt.NDArray[np.uint32]) -> None:
        """``begins``: where each string begins, behind its length, counted from where the list does."""
        self._path, self._header, self._place, self._begins = path, header, place, begins

    def __len__(self) -> int:
        return len(self._begins)

    def forget(self) -> None:
        """Let the header go that they are made of: a Gemma's takes 10 MB. Nobody asks for them any more."""
        self._header, self._place, self._begins = bytearray(), slice(0), self._begins[:0]

    def all(self) -> list[str]:
        """Make all of them.

        Raises:
            CorruptCheckpointError: one is no text.
        """
        data, begins = bytes(self._header[self._place]), self._begins.astype(np.int64)
        kept = np.ones(len(data), bool)
        for before in range(2, 9):  # of each length one zero stays, which parts it from the string before it
            kept[begins - before] = False
        joined = np.frombuffer(data, np.uint8)[kept].tobytes()
        if joined.count(0) == len(begins):  # else a string has that character itself
            with suppress(UnicodeDecodeError):  # which one it is, is said below
                return joined.decode("utf-8").split("\0")[1:]
        places = zip(begins.tolist(), [*(begins[1:] - 8).tolist(), len(data)], strict=True) if len(begins) else ()
        return [_text(self._path, data[begin:end]) for begin, end in places]


Value: TypeAlias = "bool | int | float | str | npt.NDArray[Any] | Strings"
"""A value of the metadata. Lists of numbers are numpy's arrays."""


@dataclass(frozen=True)
class TensorEntry:
    """One tensor, as the table has it."""

    kind: TensorType
    shape: tuple[int, ...]  # rows first, as everywhere in this package; the file has the numbers of a row first
    begin: int  # counted from the first byte of the file
    end: int


@dataclass(frozen=True)
class Header:
    """What a file says of itself."""

    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorEntry]


def architecture_of(path: Path) -> str | None:
    """What a file says that it is a model of, read from its first entries. None: it does not say so there."""
    file = None
    try:
        file = OpenFile(path, path)
        reader = _Reader(file)
        if reader.take(4) != MAGIC or reader.number("I") not in VERSIONS:
            return None
        _, entries = reader.number("Q"), reader.number("Q")
        for _ in range(min(entries, FIRST_ENTRIES)):
            name = reader.name()
            value = reader.value(name)
            if name == ARCHITECTURE:
                return value if isinstance(value, str) else None
    except (OSError, CheckpointError):
        return None
    finally:
        if file is not None:
            file.close()
    return None


def read_header(file: OpenFile) -> Header:
    """The header of an open file.

    Raises:
        CorruptCheckpointError: it is not what the format asks for, or describes what the file does not hold.
        UnsupportedModelError: a tensor is of a type that is not known here, as of a newer format.
    """
    reader = _Reader(file)
    if file.size < 4 or (magic := reader.take(4)) != MAGIC:
        found = f"the bytes {magic!r}" if file.size >= 4 else f"a file of {file.size} bytes"
        raise CorruptCheckpointError(file.path, f"a GGUF file, which begins with {MAGIC!r}", found)
    version = reader.number("I")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
        found = f"version {swapped} in big-endian order" if swapped in VERSIONS else f"version {version}"
        expected = f"GGUF of version {' or '.join(map(str, VERSIONS))}, little-endian"
        raise CorruptCheckpointError(file.path, expected, found, "Convert the model again with a current llama.cpp.")
    tensors, entries = reader.number("Q"), reader.number("Q")
    for what, count in (("tensors", tensors), ("entries of metadata", entries)):
        if count > MOST_ENTRIES:
            raise CorruptCheckpointError(file.path, f"at most {MOST_ENTRIES:,} {what}", f"{count:,}")
    metadata: dict[str, Value] = {}
    for _ in range(entries):
        name = reader.name()
        if name in metadata:
            raise CorruptCheckpointError(file.path, "each name of the metadata once", f"{short(name)} twice")
        metadata[name] = reader.value(name)
    table = [_read_entry(reader) for _ in range(tensors)]
    return Header(metadata, _checked_table(file, table, reader.at, _alignment(file.path, metadata)))


@dataclass(frozen=True)
class _Row:
    name: str
    kind: TensorType
    shape: tuple[int, ...]
    offset: int


def _read_entry(reader: _Reader) -> _Row:
    path, name = reader.path, reader.name()
    rank = reader.number("I")
    if not 1 <= rank <= MOST_DIMENSIONS:
        raise CorruptCheckpointError(path, f"1 to {MOST_DIMENSIONS} dimensions for {short(name)}", f"{rank}")
    shape = tuple(reader.number("Q") for _ in range(rank))[::-1]
    if min(shape) < 1 or math.prod(shape) >= _LIMIT:
        raise CorruptCheckpointError(path, f"{short(name)} to be of a possible size", f"the shape {short(shape)}")
    number, offset = reader.number("I"), reader.number("Q")
    kind = TYPES.get(number)
    if kind is None:
        raise _unknown_type(path, name, number)
    if shape[-1] % kind.elements:
        expected = f"rows of {short(name)} in whole blocks of {kind.elements}, as {kind.name} has them"
        raise CorruptCheckpointError(path, expected, f"rows of {shape[-1]:,}")
    return _Row(name, kind, shape, offset)


def _unknown_type(path: Path, name: str, number: int) -> UnsupportedModelError:
    newest = max(TYPES)
    if number > newest:
        what = f"which this release does not read: it is newer than {TYPES[newest].name}, or the file is damaged"
    else:
        what = "which the format has given up"
    return UnsupportedModelError(
        f"{path}: {short(name)} is of the type {number} of GGUF, {what}. Take this model's file in another "
        "quantisation, such as Q8_0 or Q4_K_M."
    )


def _alignment(path: Path, metadata: Mapping[str, Value]) -> int:
    found = metadata.get("general.alignment", 32)
    if type(found) is not int or not 0 < found <= LARGEST_ALIGNMENT or found & (found - 1):
        raise CorruptCheckpointError(path, "a power of two as general.alignment", short(found))
    return found


def _checked_table(file: OpenFile, table: list[_Row], end: int, alignment: int) -> dict[str, TensorEntry]:
    """The tensors, if each begins where the one before it ends, and all lie inside the file."""
    path, start = file.path, _aligned(end, alignment)
    found: dict[str, TensorEntry] = {}
    position = start
    for row in sorted(table, key=lambda row: row.offset):
        if row.name in found:
            raise CorruptCheckpointError(path, "each tensor once", f"{short(row.name)} twice")
        begin = start + row.offset
        if begin != position:
            expected = f"{short(row.name)} to begin at byte {position:,}, where the tensor before it ends"
            what = "not aligned" if row.offset % alignment else "an overlap" if begin < position else "a hole"
            raise CorruptCheckpointError(path, expected, f"{what}: it begins at byte {begin:,}")
        size = math.prod(row.shape) // row.kind.elements * row.kind.nbytes
        if begin + size > file.size:
            expected = f"{begin + size:,} bytes, as its table of tensors says"
            raise CorruptCheckpointError(path, expected, f"{file.size:,} bytes", _INCOMPLETE)
        found[row.name] = TensorEntry(row.kind, row.shape, begin, begin + size)
        position = _aligned(begin + size, alignment)
    return found


def _aligned(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


class _Reader:
    """Takes a header from its file, piece by piece: never more of it than the file has or a header may be long."""

    def __init__(self, file: OpenFile) -> None:
        self._file, self._known, self.at = file, bytearray(), 0
        self.path = file.path

    def take(self, count: int) -> bytes:
        """Return the next bytes, and go past them."""
        self._fetch(self.at + count)
        found = bytes(self._known[self.at : self.at + count])
        self.at += count
        return found

    def number(self, code: str) -> Any:
        """Return the next number, as ``struct`` spells its type."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def name(self) -> str:
        """Return the next string, which is a name."""
        length = self.number("Q")
        if not 0 < length <= MOST_NAME:
            raise CorruptCheckpointError(self.path, f"names of 1 to {MOST_NAME:,} bytes", f"one of {length:,}")
        return _text(self.path, self.take(length))

    def value(self, name: str) -> Value:
        """Return the next value of the metadata."""
        kind = self.number("I")
        if kind == _ARRAY:
            return self._array(name)
        if kind == _STRING:
            return _text(self.path, self.take(self.number("Q")))
        if kind not in _SCALARS:
            raise self._unknown(name, kind)
        if kind == _BOOL:
            self._check_bools(name, self._peek(1))
        found: bool | int | float = self.number(_SCALARS[kind])
        # The shortest number that is this one in float32: what was written as 1e-6 is meant as that.
        return float(str(np.float32(found))) if kind == _FLOAT32 else found

    def _array(self, name: str) -> Value:
        kind, count = self.number("I"), self.number("Q")
        if kind == _STRING:
            begin = self.at
            begins = self._begins_of_strings(count)
            return Strings(self.path, self._known, slice(begin, self.at), begins)
        if kind not in _SCALARS:
            raise self._unknown(name, kind)
        dtype = np.dtype(_SCALARS[kind]).newbyteorder("<")
        if count > MOST_BYTES:  # before it is multiplied: numbers of a million digits take long
            raise self._too_long(count)
        data = self.take(count * dtype.itemsize)
        if kind == _BOOL:
            self._check_bools(name, data)
        return np.frombuffer(data, dtype)

    def _begins_of_strings(self, count: int) -> npt.NDArray[np.uint32]:
        """Go past so many strings. Ends where the file does: nothing is allocated for what is only promised."""
        begin, left = self.at, count
        found: list[npt.NDArray[np.uint32]] = []
        while left:
            ends = self._end_to_end()[:left]
            if len(ends) < _WORTH_IT:
                ends = self._one_by_one(min(left, _SOME))
            begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) + (self.at + 8 - begin)
            found.append(begins.astype(np.uint32))
            self.at, left = self.at + int(ends[-1]), left - len(ends)
        return np.concatenate(found) if found else np.empty(0, np.uint32)

    def _end_to_end(self) -> npt.NDArray[np.int64]:
        """Where the next strings end, counted from here: as many as can be told from their bytes alone.

        A string of less than 256 bytes stands behind its length and seven zeros. Where these are, and each string ends
        where the next one's are, nothing has to be read one by one: a Gemma has a million strings.
        """
        end = min(self.at + _PIECE, self._file.size, MOST_BYTES)
        self._fetch(end)
        data = np.frombuffer(self._known, np.uint8)[self.at : end]
        two = (data[:-1] | data[1:]) == 0
        four = two[:-2] & two[2:]
        lengths_at = np.flatnonzero(four[1:-3] & four[4:])
        ends = lengths_at + 8 + data[lengths_at]
        if not len(ends) or lengths_at[0] != 0:
            return ends[:0]
        other = np.flatnonzero(ends[:-1] != lengths_at[1:])
        return ends[: other[0] if len(other) else len(ends) - 1]

    def _one_by_one(self, count: int) -> npt.NDArray[np.int64]:
        """Where the next strings end, counted from here."""
        found, at = array("q"), self.at
        known, number, have = self._known, struct.Struct("<Q").unpack_from, len(self._known)  # which grows in place
        for _ in range(count):
            if at + 8 > have:
                self._fetch(at + 8)
                have = len(known)
            at += 8 + number(known, at)[0]
            if at > have:
                self._fetch(at)
                have = len(known)
            found.append(at - self.at)
        return np.frombuffer(found, np.int64)

    def _check_bools(self, name: str, data: bytes) -> None:
        if data.strip(b"\0\1"):
            raise CorruptCheckpointError(self.path, f"0 or 1 as each truth value of {short(name)}", "another number")

    def _unknown(self, name: str, kind: int) -> CorruptCheckpointError:
        what = "a list in a list" if kind == _ARRAY else f"the type {kind}"
        return CorruptCheckpointError(self.path, f"{short(name)} to be of a type of the format", what)

    def _peek(self, count: int) -> bytes:
        self._fetch(self.at + count)
        return bytes(self._known[self.at : self.at + count])

    def _too_long(self, count: int) -> CorruptCheckpointError:
        return CorruptCheckpointError(self.path, f"a header of at most {MOST_BYTES:,} bytes", f"{count:,} bytes")

    def _fetch(self, end: int) -> None:
        """Have the bytes up to ``end``."""
        if end <= len(self._known):
            return
        if end > self._file.size:
            raise CorruptCheckpointError(
                self.path, f"a header of at least {end:,} bytes", f"a file of {self._file.size:,} bytes", _INCOMPLETE
            )
        if end > MOST_BYTES:
            raise self._too_long(end)
        while len(self._known) < end:
            piece = self._file.head(len(self._known), _PIECE)
            if not piece:
                raise CorruptCheckpointError(self.path, f"{self._file.size:,} bytes", "fewer: it was cut off meanwhile")
            self._known += piece


def _text(path: Path, data: bytes | bytearray) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"a byte that is not UTF-8 at position {error.start} of {short(bytes(data))}"
        raise CorruptCheckpointError(path, "texts in UTF-8", found) from None
