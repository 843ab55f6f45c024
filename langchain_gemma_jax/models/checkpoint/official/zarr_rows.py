"""The rows of a Zarr array, a few at a time, for chunks of any size.

To read a part of a chunk, TensorStore decompresses all of it, in addition to the array that it returns;
and Orbax writes an array as one chunk unless it was sharded. An embedding, which is most of a small
model, would be in memory twice before the first row is used. So a chunk as Orbax writes it, plain numbers
compressed by Zstandard, is decompressed here as a stream. TensorStore reads all others, and small ones.
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

_SMALL = 1 << 20  # bytes of a chunk that may be in memory twice
_BLOCK_BYTES = 4 << 20  # decompressed at a time
_INPUT_BYTES = 1 << 18  # compressed bytes read at a time
_NOWHERE = 1 << 62  # the index of a shard gives an offset beyond this for a chunk that is absent


class ZarrRows:
    """Reads the rows of an array: its slices along the first axis.

    Methods raise ``ValueError`` if a chunk is missing or damaged.
    """

    def __init__(self, array: tensorstore.TensorStore) -> None:
        self._array = array
        self._height = ((array.chunk_layout.read_chunk.shape or (1,))[0]) or 1  # rows of a chunk
        self._at: tuple[int, _ChunkStream | None] = -1, None  # the current chunk of `row`: its number and its stream

    def whole(self) -> Array:
        """Return all rows at once."""
        stream = _open_chunk(self._array, 0) if self._array.shape[:1] == (self._height,) else None
        return self._read(...) if stream is None else stream.read(self._height)

    def blocks(self) -> Iterator[Array]:
        """Yield all rows in order, in blocks of about 4 MB; larger chunks that cannot be streamed come whole."""
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
        """Return one row. Reading all rows of a chunk in order takes one pass over it."""
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
        rows: Array = self._array[where].read().result()
        return rows


class _ChunkStream:
    """A stream of one chunk's rows, decompressed in order."""

    def __init__(self, frame: _Frame, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._numbers = zstandard.ZstdDecompressor().stream_reader(cast("IO[bytes]", frame), read_size=_INPUT_BYTES)
        self._shape, self._dtype = shape, dtype
        self.at = 0  # the next row

    def read(self, rows: int) -> Array:
        """Return the next ``rows`` rows."""
        block = np.empty((rows, *self._shape[1:]), self._dtype)
        self.at += rows
        try:
            count = self._numbers.readinto(block.reshape(-1).view(np.uint8).data)
            more = self._numbers.read(1) if self.at == self._shape[0] else b""
        except zstandard.ZstdError as error:
            raise ValueError(f"a damaged chunk: {error}") from error
        if count < block.nbytes or more:
            raise ValueError(f"a chunk of {'more' if more else 'less'} than {list(self._shape)}")
        return block

    def blocks(self, rows: int, wanted: int) -> Iterator[Array]:
        """Yield the first ``wanted`` rows, ``rows`` at a time. The rest is read too, to detect a damaged chunk."""
        while (left := self._shape[0] - self.at) > 0:
            inside = wanted - self.at
            block = self.read(min(rows, left))
            if inside > 0:
                yield block[:inside]


class _Frame:
    """A file-like reader of the bytes of a stored value that are one Zstandard frame."""

    def __init__(self, store: tensorstore.KvStore, key: str, begin: int = 0, end: int | None = None) -> None:
        self._store, self._key, self._at, self._end = store, key, begin, end  # no end: the value's

    def read(self, size: int) -> bytes:
        stop = self._at + size
        try:
            piece = self._until(stop if self._end is None else min(stop, self._end))
        except ValueError:  # fewer bytes are left, and TensorStore does not say how many
            piece = self._until(self._end)
        self._at += len(piece)
        return piece

    def _until(self, stop: int | None) -> bytes:
        return self._store.read(self._key, byte_range=slice(self._at, stop)).result().value


def _open_chunk(array: tensorstore.TensorStore, number: int) -> _ChunkStream | None:
    """Return a stream of one chunk along the first axis; None if it is small, absent, or in another layout."""
    store, layout, dtype = array.kvstore, array.chunk_layout, array.dtype.numpy_dtype
    shape = tuple(side or 0 for side in layout.read_chunk.shape or ())
    if store is None or shape[1:] != array.shape[1:] or shape != layout.write_chunk.shape:
        return None  # it holds parts of rows, or is one of several in a shard
    if math.prod(shape) * dtype.itemsize <= _SMALL:
        return None
    frame = _find_frame(store, array.spec().to_json()["metadata"], [str(number), *"0" * (array.rank - 1)])
    return None if frame is None else _ChunkStream(frame, shape, dtype)


def _find_frame(store: tensorstore.KvStore, metadata: Mapping[str, object], grid: Sequence[str]) -> _Frame | None:
    """Return the frame of a chunk at a place in the grid. None: it is absent, or not plain numbers under Zstandard."""
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
    """Return the only chunk of a shard. The shard ends with its index: the chunk's offset, length and checksum."""
    index = store.read(key, byte_range=slice(-20, None)).result().value
    begin, length = (int.from_bytes(index[at : at + 8], "little") for at in (0, 8))
    return _Frame(store, key, begin, begin + length) if 0 < begin + length < _NOWHERE else None
