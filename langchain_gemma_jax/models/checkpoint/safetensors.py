"""Safetensors files, checked to the last byte before the first tensor is read.

A file is 8 bytes that give the header's length, a JSON header that gives each tensor's dtype, shape
and place, and the tensors, end to end. Nothing in it is trusted: a header that passes the checks here
describes every byte of the file exactly once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    TensorMismatchError,
    UnsafeCheckpointError,
)
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import MAX_BYTES, parse_object, read_object, short
from langchain_gemma_jax.models.seams.tensor_source import PIECE_BYTES, Array, Cut, CutTensors, TensorSource

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_BY_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
    16: "U16 I16 F16 BF16",
    32: "U32 I32 F32",
    64: "U64 I64 F64 C64",
}
BITS: Mapping[str, int] = {name: bits for bits, names in _BY_BITS.items() for name in names.split()}
"""Bits of every dtype of the format. A file may hold all of them; parameters are read from those below."""

READABLE: Mapping[str, np.dtype[np.generic]] = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}


_LIMIT = 1 << 63  # no size, offset or count of elements reaches it
_MAX_RANK = 32  # a product over a million of dimensions would take minutes
_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,200}\.safetensors")
_INCOMPLETE = "The download is probably incomplete."


@dataclass(frozen=True)
class _Entry:
    """One tensor's entry in the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int  # counted from the first byte of the file
    end: int


class SafetensorsFile:
    """One open file with a checked header. Several threads may read from it at once."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        with ExitStack() as opened:
            self._file = OpenFile(real_file(folder, name), self.path)
            opened.callback(self._file.close)
            self.entries = _read_entries(self._file)
            opened.pop_all()

    def read(self, name: str) -> Array:
        entry, dtype = self._entry(name)
        tensor = np.empty(entry.shape, dtype)
        self._file.fill(tensor, entry.begin)
        return tensor

    def read_into(self, name: str, target: Array) -> None:
        self._entry(name)  # checks that the dtype can be read
        self.read_bytes(name, 0, target)

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        """Fill an array with a tensor's bytes, from ``begin`` on."""
        entry = self.entries[name]  # of any dtype
        self._file.fill(target, entry.begin + begin)

    def read_rows(self, name: str) -> Iterator[Array]:
        """Yield the tensor, as many rows at a time as fit in the processor's cache, all in the same buffer."""
        entry, dtype = self._entry(name)
        total, *inner = entry.shape
        row_bytes = math.prod(inner) * dtype.itemsize
        room = np.empty((max(1, min(total, PIECE_BYTES // max(1, row_bytes))), *inner), dtype)
        for start in range(0, total, len(room)):
            rows = room[: total - start]
            self._file.fill(rows, entry.begin + start * row_bytes)
            yield rows

    def read_raw(self, name: str) -> Iterator[Array]:
        """Yield the bytes of a tensor of any dtype, a few rows at a time: uint8 ``[row, byte]``, in the same buffer."""
        entry = self.entries[name]
        total = entry.shape[0]
        row_bytes = (entry.end - entry.begin) // max(1, total)
        room = np.empty((max(1, min(total, PIECE_BYTES // max(1, row_bytes))), row_bytes), np.uint8)
        for start in range(0, total, len(room)):
            rows = room[: total - start]
            self._file.fill(rows, entry.begin + start * row_bytes)
            yield rows

    def close(self) -> None:
        self._file.close()

    def _entry(self, name: str) -> tuple[_Entry, np.dtype[np.generic]]:
        entry = self.entries[name]
        if entry.dtype not in READABLE:
            raise TensorMismatchError(
                self.path, f"{name!r} in one of {', '.join(READABLE)}", f"{entry.dtype}, which cannot be read"
            )
        return entry, READABLE[entry.dtype]


def _read_entries(file: OpenFile) -> dict[str, _Entry]:
    """Return the header's entries, after a check that they cover the rest of the file without a hole or an overlap."""
    path, size = file.path, file.size
    if size < 8:
        raise CorruptCheckpointError(path, "8 bytes with the length of the header", f"a file of {size} bytes")
    length = int.from_bytes(file.head(0, 8), "little")
    if length > MAX_BYTES:
        raise CorruptCheckpointError(path, f"a header of at most {MAX_BYTES:,} bytes", f"a length of {length:,}")
    start = 8 + length
    if start > size:
        raise CorruptCheckpointError(path, f"a header of {length:,} bytes", f"a file of {size:,} bytes", _INCOMPLETE)
    header = parse_object(file.head(8, length), path, "header")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CorruptCheckpointError(path, "__metadata__ that maps names to strings", short(metadata))
    entries = {name: _check_entry(path, name, raw, start) for name, raw in header.items()}
    end = _check_cover(path, entries, start)
    if end != size:
        advice = _INCOMPLETE if end > size else ""
        raise CorruptCheckpointError(path, f"{end:,} bytes, as its header says", f"{size:,} bytes", advice)
    return entries


def _check_cover(path: Path, entries: Mapping[str, _Entry], position: int) -> int:
    """Return the end of the last tensor, after a check that each tensor begins where the one before it ends."""
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != position:
            expected = f"{short(name)} to begin at byte {position:,}, where the tensor before it ends"
            what = "an overlap" if entry.begin < position else "a hole"
            raise CorruptCheckpointError(path, expected, f"{what}: it begins at byte {entry.begin:,}")
        position = entry.end
    return position


def _check_entry(path: Path, name: str, raw: object, start: int) -> _Entry:
    if not isinstance(raw, dict) or raw.keys() != {"dtype", "shape", "data_offsets"}:
        found = short(sorted(raw)) if isinstance(raw, dict) else short(raw)
        raise CorruptCheckpointError(path, f"dtype, shape and data_offsets for {short(name)}", found)
    dtype, shape, offsets = raw["dtype"], raw["shape"], raw["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise CorruptCheckpointError(path, f"{short(name)} to have a dtype of the format", short(dtype))
    if not _are_sizes(shape) or len(shape) > _MAX_RANK:
        raise CorruptCheckpointError(path, f"a shape of whole numbers for {short(name)}", short(shape))
    if not _are_sizes(offsets) or len(offsets) != 2:  # that end < begin shows below: too few bytes for any shape
        raise CorruptCheckpointError(path, f"data_offsets [begin, end] for {short(name)}", short(offsets))
    if math.prod(size for size in shape if size) >= _LIMIT:  # a 0 among them must not hide the others
        raise CorruptCheckpointError(path, f"{short(name)} to be of a possible size", f"the shape {short(shape)}")
    begin, end = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits != 8 * (end - begin):
        expected = f"{bits // 8:,} bytes for {short(name)}, {dtype} of shape {short(shape)}"
        raise CorruptCheckpointError(path, expected, f"{end - begin:,} bytes")
    return _Entry(dtype, tuple(shape), start + begin, start + end)


def _are_sizes(value: object) -> bool:
    # type() and not isinstance(): `true` is an int to Python.
    return isinstance(value, list) and all(type(size) is int and 0 <= size < _LIMIT for size in value)


class SafetensorsSource(TensorSource):
    """A folder's tensors, from one file or from the shards that an index lists."""

    shared = True

    def __init__(self, folder: Path, files: Collection[SafetensorsFile]) -> None:
        self.location, self._files = str(folder), tuple(files)
        self._where = {name: file for file in self._files for name in file.entries}

    def names(self) -> Collection[str]:
        return self._where.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._where[name].entries[name].shape

    def dtype(self, name: str) -> str:
        stored = self._where[name].entries[name].dtype
        return READABLE[stored].name if stored in READABLE else stored

    def read(self, name: str) -> Array:
        return self._where[name].read(name)

    def read_into(self, name: str, target: Array) -> bool:
        self._where[name].read_into(name, target)
        return True

    def read_rows(self, name: str) -> Iterator[Array]:
        return self._where[name].read_rows(name)

    def nbytes(self, name: str) -> int:
        entry = self._where[name].entries[name]
        return entry.end - entry.begin

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        self._where[name].read_bytes(name, begin, target)

    def cut(self, cuts: Mapping[str, Cut]) -> TensorSource:
        return CutTensors(self, cuts)

    def read_raw(self, name: str) -> Iterator[Array]:
        """See ``SafetensorsFile.read_raw``."""
        return self._where[name].read_raw(name)

    def close(self) -> None:
        for file in self._files:
            file.close()


def open_safetensors(folder: Path) -> SafetensorsSource:
    """Open the tensors of a folder: ``model.safetensors``, or shards with their index, or a single such file.

    Raises:
        CheckpointNotFoundError: there is no such file, or a shard is missing.
        CorruptCheckpointError: a file, or the index, is malformed.
        UnsafeCheckpointError: the index or a link leads out of the folder.
    """
    promised: dict[str, str] = {}
    if (folder / INDEX).is_symlink() or (folder / INDEX).exists():
        promised = _read_index(folder)
    names = sorted(set(promised.values())) or [_only_file(folder)]
    with ExitStack() as opened:
        files: dict[str, SafetensorsFile] = {}
        for name in names:
            files[name] = SafetensorsFile(folder, name)
            opened.callback(files[name].close)
        _check_shards(folder, promised, files)
        source = SafetensorsSource(folder, files.values())
        opened.pop_all()  # all is well: the source closes them
    return source


def _only_file(folder: Path) -> str:
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    if SINGLE in names:
        return SINGLE
    if len(names) != 1:
        what = ", ".join(names[:5]) if names else "no .safetensors file"
        raise CheckpointNotFoundError(
            folder, f"{SINGLE}, or shards with {INDEX}", what, "Download the missing files of the model."
        )
    return names[0]


def _read_index(folder: Path) -> dict[str, str]:
    """Return the index of a folder: the name of each tensor and its file."""
    path = folder / INDEX
    weights = read_object(real_file(folder, INDEX), path).get("weight_map")
    if not isinstance(weights, dict) or not weights:
        raise CorruptCheckpointError(path, "weight_map, from the name of each tensor to its file", short(weights))
    for tensor, file in weights.items():
        if not isinstance(file, str):
            raise CorruptCheckpointError(path, f"a file name for {short(tensor)}", short(file))
        if not _SHARD.fullmatch(file):  # no separators, so no other folder; no pickles
            raise UnsafeCheckpointError(path, f"a .safetensors file of this folder for {short(tensor)}", short(file))
    return weights


def _check_shards(folder: Path, promised: Mapping[str, str], files: Mapping[str, SafetensorsFile]) -> None:
    """Check that each tensor is in the shard that the index names, and in no other."""
    for tensor, name in promised.items():
        if tensor not in files[name].entries:
            raise CorruptCheckpointError(
                folder / name, f"{short(tensor)}, which {INDEX} says is in it", "no tensor of that name"
            )
    seen: dict[str, str] = {}
    for name, file in files.items():
        for tensor in file.entries:
            if tensor in seen:
                raise CorruptCheckpointError(
                    folder / name, f"no tensor twice, as {short(tensor)} is", f"also in {seen[tensor]}"
                )
            seen[tensor] = name
