"""A Zarr array by its rows, a few at a time, whatever the size of its chunks.

To read any of a chunk, TensorStore decompresses all of it, beside the array that it hands out; and Orbax
writes an array as one chunk unless it was sharded. An embedding that is most of a small model would be in
memory twice before a row of it is used. So a chunk that lies as Orbax writes it, plain numbers under
Zstandard, is decompressed here, as a stream. TensorStore reads every other, and the small ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import EllipsisType
from typing import IO, TYPE_CHECKING, cast

import numpy as np
import zstandard

from langchain_gemma_jax.models.seams.tensor_source import Array

if TYPE_CHECKING:
    import tensorstore

_SMALL = 1 << 20  # bytes of a chunk that may as well be in memory twice
_BLOCK_BYTES = 4 << 20  # decompressed at a time
_INPUT_BYTES = 1 << 18  # read at a time, as they are stored
_NOWHERE = 1 << 62  # the index of a shard gives a place behind it for a chunk that is absent


class ZarrRows:
    """An array by its rows, which are its slices along the first axis.

    ``ValueError`` from a method: a chunk is missing or damaged.
    """

    def __init__(self, array: tensorstore.TensorStore) -> None:
        self._array = array
        self._height = ((array.chunk_layout.read_chunk.shape or (1,))[0]) or 1  # rows of a chunk
        self._at: tuple[int, _ChunkStream | None] = -1, None  # where `row` is: the chunk's number, and the chunk

    def whole(self) -> Array:
        """All rows at once."""
        stream = _open_chunk(self._array, 0) if self._array.shape[:1] == (self._height,) else None
        return self._read(...) if stream is None else stream.read(self._height)

    def blocks(self) -> Iterator[Array]:
        """All rows in order, in blocks of about 4 MB; of a chunk's size if that is more and it cannot be streamed."""
        total, itemsize = self._array.shape[0], self._array.dtype.numpy_dtype.itemsize
        rows = max(1, _BLOCK_BYTES * total // max(1, self._array.size * itemsize))
        step = self._height * max(1, rows // self._height)  # whole chunks: TensorStore decompresses no less
        for start in range(0, total, step):
            wanted = min(step, total - start)
            stream = _open_chunk(self._array, start // step) if step == self._height else None
            if stream is None:
                yield self._read(slice(start, start + wanted))
            else:
                yield from stream.blocks(rows, wanted)

    def row(self, index: int) -> Array:
        """One row. Asked for in order, all rows of a chunk take one pass over it."""
        number, row = divmod(index, self._height)
        at, stream = self._at
        if at != number or (stream is not None and stream.at > row):
            stream = _open_chunk(self._array, number)
            self._at = number, stream
        if stream is None:
            return self._read(index)
        while stream.at < row:
            stream.read(1)
        return cast("Array", stream.read(1)[0])

    def _read(self, where: slice | int | EllipsisType) -> Array:
        found: Array = self._array[where].read().result()
        return found


class _ChunkStream:
    """One chunk, decompressed from its first row to its last."""

    def __init__(self, frame: _Frame, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._numbers = zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", frame), read_size=_INPUT_BYTES)
        self._shape, self._dtype = shape, dtype
        self.at = 0  # the next row

    def read(self, rows: int) -> Array:
        """The next rows."""
        block = np.empty((rows, *self._shape[1:]), self._dtype)
        self.at += rows
        try:
            found = self._numbers.readinto(block.reshape(-1).view(np.uint8).data)
            more = self._numbers.read(1) if self.at == self._shape[0] else b""
        except zstandard.ZstdError as error:
            raise ValueError(f"a damaged chunk: {error}") from error
        if found < block.nbytes or more:
            raise ValueError(f"a chunk of {'more' if more else 'less'} than {list(self._shape)}")
        return block

    def blocks(self, rows: int, wanted: int) -> Iterator[Array]:
        """The first ``wanted`` rows, ``rows`` at a time. Those behind them are read too: the chunk may be damaged."""
        while (left := self._shape[0] - self.at) > 0:
            inside = wanted - self.at
            block = self.read(min(rows, left))
            if inside > 0:
                yield block[:inside]


class _Frame:
    """Bytes of a stored value, which are one Zstandard frame, as the file that it is read from."""

    def __init__(self, store: tensorstore.KvStore, key: str, begin: int = 0, end: int | None = None) -> None:
        self._store, self._key, self._at, self._end = store, key, begin, end  # no end: the value's

    def read(self, size: int) -> bytes:
        stop = self._at + size
        try:
            piece = self._until(stop if self._end is None else min(stop, self._end))
        except ValueError:  # fewer are left, and TensorStore does not say how many
            piece = self._until(self._end)
        self._at += len(piece)
        return piece

    def _until(self, stop: int | None) -> bytes:
        return self._store.read(self._key, byte_range=slice(self._at, stop)).result().value


def _open_chunk(array: tensorstore.TensorStore, number: int) -> _ChunkStream | None:
    """Return a stream of one chunk along the first axis; None if it is small, or absent, or not as Orbax writes it."""
    store, layout, dtype = array.kvstore, array.chunk_layout, array.dtype.numpy_dtype
    shape = tuple(side or 0 for side in layout.read_chunk.shape or ())
    if store is None or shape[1:] != array.shape[1:] or shape != layout.write_chunk.shape:
        return None  # it holds parts of rows, or is one of several in a shard
    if math.prod(shape) * dtype.itemsize <= _SMALL:
        return None
    frame = _find_frame(store, array.spec().to_json()["metadata"], [str(number), *"0" * (array.rank - 1)])
    return None if frame is None else _ChunkStream(frame, shape, dtype)


def _find_frame(store: tensorstore.KvStore, metadata: Mapping[str, object], grid: Sequence[str]) -> _Frame | None:
    """A chunk by its place in the grid, if it is numbers as they lie in memory under Zstandard, and is there."""
    match metadata:
        case {"compressor": {"id": "zstd"}, "filters": None, "order": "C", "dtype": str(dtype)} if dtype[:1] != ">":
            key = ".".join(grid)
        case {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]}:
            key = "/".join(["c", *grid])
        case {"codecs": [{"name": "sharding_indexed", "configuration": shard}]} if _is_plain(shard):
            return _find_in_shard(store, "/".join(["c", *grid]))
        case _:
            return None
    return _Frame(store, key) if store.read(key, byte_range=slice(0, 0)).result().state == "value" else None


def _is_plain(shard: object) -> bool:
    match shard:
        case {
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "end",
        }:
            return True
        case _:
            return False


def _find_in_shard(store: tensorstore.KvStore, key: str) -> _Frame | None:
    """The only chunk of a shard, which ends with its index: where the chunk begins, its length, a checksum."""
    index = store.read(key, byte_range=slice(-20, None)).result().value
    begin, length = (int.from_bytes(index[at : at + 8], "little") for at in (0, 8))
    return _Frame(store, key, begin, begin + length) if 0 < begin + length < _NOWHERE else None
