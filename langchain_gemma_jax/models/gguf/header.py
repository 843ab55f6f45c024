"""The header of a GGUF file, checked before anything large is allocated.

A file is "GGUF", a version, two counts, metadata (names with typed values), a table of tensors, and the tensors, each
at a multiple of the alignment. Nothing in it is trusted. We do not use the reader of the format's authors: it maps the
file, so that a truncation ends the process; it makes an object for each of a vocabulary's million strings, which takes
seconds and gigabytes; and it checks neither that tensors lie inside the file nor that they do not overlap.
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


@dataclass(frozen=True)
class TensorType:
    """One type: a block has ``elements`` numbers in ``nbytes`` bytes."""

    name: str
    elements: int
    nbytes: int


# A file may hold all of them; parameters are read from those in ``packed.block_formats``.
TYPES: Mapping[int, TensorType] = {
    number: TensorType(name, elements, nbytes)
    for number, name, elements, nbytes in (
        (0, "F32", 1, 4), (1, "F16", 1, 2), (28, "F64", 1, 8), (30, "BF16", 1, 2),
        (24, "I8", 1, 1), (25, "I16", 1, 2), (26, "I32", 1, 4), (27, "I64", 1, 8),
        (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24),
        (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 40),
        (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136),
        (29, "IQ1_M", 256, 56), (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18),
    )
}  # fmt: skip


NEWEST = "0.19"  # release of the ``gguf`` package whose types these are
_NEWER = {42: "Q2_0"}  # that llama.cpp has, and this release of the package does not
_GIVEN_UP = {
    4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}  # fmt: skip

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_BYTES = 48 << 20  # of a header: a Gemma's vocabulary with its merges takes 20 MB
MOST_ENTRIES = 1 << 16  # of the metadata, and of the table of tensors: a Gemma has below 2,000
MOST_NAME = 1 << 10  # bytes
MOST_DIMENSIONS = 4
LARGEST_ALIGNMENT = 1 << 20
ARCHITECTURE, KIND, FIRST_ENTRIES = "general.architecture", "general.type", 8  # writers put these first
_LIMIT = 1 << 63
_PIECE = 1 << 20  # bytes that are read at a time
_WORTH_IT, _SOME = 64, 1 << 12  # strings: the fewest that justify a scan of a piece; those then read one by one
_INCOMPLETE = "The download is probably incomplete."

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY, _BOOL, _FLOAT32 = 8, 9, 7, 6


class Strings:
    """A long list of strings, which are decoded on demand.

    In the file, eight bytes with its length are before each string. The last of them is 0 for any string that fits.
    """

    def __init__(self, path: Path, header: bytearray, place: slice, begins: npt.NDArray[np.uint32]) -> None:
        """Keep the encoded strings. ``begins``: offset of each string, after its length, from the begin of the list."""
        self._path, self._header, self._place, self._begins = path, header, place, begins

    def __len__(self) -> int:
        return len(self._begins)

    def forget(self) -> None:
        """Free the header that the strings are decoded from: a Gemma's takes 10 MB. The list is empty then."""
        self._header, self._place, self._begins = bytearray(), slice(0), self._begins[:0]

    def all(self) -> list[str]:
        """Decode all strings.

        Raises:
            CorruptCheckpointError: one is no text.
        """
        data, begins = bytes(self._header[self._place]), self._begins.astype(np.int64)
        kept = np.ones(len(data), bool)
        for before in range(2, 9):  # one zero of each length is kept, as the separator from the string before it
            kept[begins - before] = False
        joined = np.frombuffer(data, np.uint8)[kept].tobytes()
        if joined.count(0) == len(begins):  # else a string contains a zero
            with suppress(UnicodeDecodeError):  # the error with its place is raised below
                return joined.decode("utf-8").split("\0")[1:]
        places = zip(begins.tolist(), [*(begins[1:] - 8).tolist(), len(data)], strict=True) if len(begins) else ()
        return [_text(self._path, data[begin:end]) for begin, end in places]


Value: TypeAlias = "bool | int | float | str | npt.NDArray[Any] | Strings"
"""A value of the metadata. Lists of numbers are numpy's arrays."""


@dataclass(frozen=True)
class TensorEntry:
    """One tensor's entry in the table."""

    kind: TensorType
    shape: tuple[int, ...]  # rows first, as everywhere in this package; the file has them in reverse order
    begin: int  # counted from the first byte of the file
    end: int


@dataclass(frozen=True)
class Header:
    """The header of a file: its metadata and its table of tensors."""

    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorEntry]


def first_texts(path: Path) -> dict[str, str]:
    """Return the texts among the first entries of a file's metadata; none, if it cannot be read."""
    file, found = None, dict[str, str]()
    try:
        file = OpenFile(path, path)
        reader = _Reader(file)
        if reader.take(4) != MAGIC or reader.number("I") not in VERSIONS:
            return found
        _, entries = reader.number("Q"), reader.number("Q")
        for _ in range(min(entries, FIRST_ENTRIES)):
            name = reader.name()
            value = reader.value(name)
            if isinstance(value, str):
                found[name] = value
    except (OSError, CheckpointError):
        return found
    finally:
        if file is not None:
            file.close()
    return found


def read_header(file: OpenFile) -> Header:
    """Read the header of an open file.

    Raises:
        CorruptCheckpointError: it is malformed, or does not match the file's size.
        UnsupportedModelError: a tensor is of an unknown type, such as one of a newer format.
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
    called = {**_NEWER, **_GIVEN_UP}.get(number)
    if number in _GIVEN_UP:
        what = "which the format has given up"
    elif called:
        what = f"which is newer than the types of the gguf package {NEWEST}, which are read here"
    else:
        what = f"which the gguf package {NEWEST} does not know: it is of a newer release, or the file is damaged"
    known = f" ({called})" if called else ""
    return UnsupportedModelError(
        f"{path}: {short(name)} is of the type {number}{known} of GGUF, {what}. Take another file of the same "
        "repository, in a quantization such as Q8_0 or Q4_K_M."
    )


def _alignment(path: Path, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= LARGEST_ALIGNMENT or alignment & (alignment - 1):
        raise CorruptCheckpointError(path, "a power of two as general.alignment", short(alignment))
    return alignment


def _checked_table(file: OpenFile, table: list[_Row], end: int, alignment: int) -> dict[str, TensorEntry]:
    """Return the tensors, after a check that each begins where the one before it ends, and all are inside the file."""
    path, start = file.path, _aligned(end, alignment)
    entries: dict[str, TensorEntry] = {}
    position = start
    for row in sorted(table, key=lambda row: row.offset):
        if row.name in entries:
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
        entries[row.name] = TensorEntry(row.kind, row.shape, begin, begin + size)
        position = _aligned(begin + size, alignment)
    return entries


def _aligned(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment


class _Reader:
    """Reads a header from its file, piece by piece: never more than the file has, or than ``MOST_BYTES``."""

    def __init__(self, file: OpenFile) -> None:
        self._file, self._known, self.at = file, bytearray(), 0
        self.path = file.path

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes, and advance."""
        self._fetch(self.at + count)
        data = bytes(self._known[self.at : self.at + count])
        self.at += count
        return data

    def number(self, code: str) -> Any:
        """Return the next number. ``code`` is its type in ``struct``'s notation."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def name(self) -> str:
        """Return the next string as a name."""
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
        number: bool | int | float = self.number(_SCALARS[kind])
        # The shortest decimal number with this float32 value: the writer's 1e-6 stays 1e-6.
        return float(str(np.float32(number))) if kind == _FLOAT32 else number

    def _array(self, name: str) -> Value:
        kind, count = self.number("I"), self.number("Q")
        if kind == _STRING:
            begin = self.at
            begins = self._begins_of_strings(count)
            return Strings(self.path, self._known, slice(begin, self.at), begins)
        if kind not in _SCALARS:
            raise self._unknown(name, kind)
        dtype = np.dtype(_SCALARS[kind]).newbyteorder("<")
        if count > MOST_BYTES:  # checked before the product
            raise self._too_long(count)
        data = self.take(count * dtype.itemsize)
        if kind == _BOOL:
            self._check_bools(name, data)
        return np.frombuffer(data, dtype)

    def _begins_of_strings(self, count: int) -> npt.NDArray[np.uint32]:
        """Skip ``count`` strings, and return their offsets. No memory is allocated before the strings are seen."""
        begin, left = self.at, count
        pieces: list[npt.NDArray[np.uint32]] = []
        while left:
            ends = self._end_to_end()[:left]
            if len(ends) < _WORTH_IT:
                ends = self._one_by_one(min(left, _SOME))
            begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) + (self.at + 8 - begin)
            pieces.append(begins.astype(np.uint32))
            self.at, left = self.at + int(ends[-1]), left - len(ends)
        return np.concatenate(pieces) if pieces else np.empty(0, np.uint32)

    def _end_to_end(self) -> npt.NDArray[np.int64]:
        """Return the ends of the next strings, relative to here: as many as a scan of the bytes can find.

        A string of less than 256 bytes comes after one byte of length and seven zeros. If each string ends where the
        next such pattern begins, the lengths need not be read one by one: a Gemma has a million strings.
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
        """Return the ends of the next ``count`` strings, relative to here."""
        ends, at = array("q"), self.at
        known, number, have = self._known, struct.Struct("<Q").unpack_from, len(self._known)  # `_known` grows in place
        for _ in range(count):
            if at + 8 > have:
                self._fetch(at + 8)
                have = len(known)
            at += 8 + number(known, at)[0]
            if at > have:
                self._fetch(at)
                have = len(known)
            ends.append(at - self.at)
        return np.frombuffer(ends, np.int64)

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
        """Read the file up to ``end``, if that was not done before."""
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
