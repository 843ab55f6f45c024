from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorstore
import zstandard

from langchain_gemma_jax.models.checkpoint.official import zarr_rows
from langchain_gemma_jax.models.checkpoint.official.zarr_rows import ZarrRows

ZSTD = {"id": "zstd", "level": 1}
ZSTD3 = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 1}}]


def zarr2(**changes):
    return {"driver": "zarr", "metadata": {"compressor": ZSTD} | changes}


def zarr3(codecs=ZSTD3, **changes):
    return {"driver": "zarr3", "metadata": {"codecs": codecs} | changes}


def sharded(shape, codecs=ZSTD3, **changes):
    return zarr3([{"name": "sharding_indexed", "configuration": {"chunk_shape": shape, "codecs": codecs} | changes}])


def write(values, spec, chunks=None):
    """An array in memory, as it would lie in a folder."""
    chunks = list(chunks or values.shape)
    if spec["driver"] == "zarr":
        grid = {"chunks": chunks}
    else:
        grid = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}}
    metadata = spec["metadata"] | grid
    array = tensorstore.open(
        spec | {"metadata": metadata, "kvstore": {"driver": "memory"}},
        create=True,
        dtype=values.dtype.name,
        shape=values.shape,
    ).result()
    array.write(values).result()
    return array


def chunk_key(array):
    (key,) = set(array.kvstore.list().result()) - {b".zarray", b"zarr.json"}
    return key


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def _every_chunk_is_large(monkeypatch):
    monkeypatch.setattr(zarr_rows, "_SMALL", 0)
    monkeypatch.setattr(zarr_rows, "_BLOCK_BYTES", 3 * 5 * 4)  # three rows of most arrays below
    monkeypatch.setattr(zarr_rows, "_INPUT_BYTES", 16)


@pytest.fixture
def streamed(monkeypatch):
    """The numbers of the chunks that were streamed, in order."""
    found, open_chunk = [], zarr_rows._open_chunk

    def watched(array, number):
        stream = open_chunk(array, number)
        if stream is not None:
            found.append(number)
        return stream

    monkeypatch.setattr(zarr_rows, "_open_chunk", watched)
    return found


AS_ORBAX_WRITES = {
    "zarr 2": zarr2(),
    "zarr 3": zarr3(),
    "zarr 3 in shards": sharded([11, 5]),
}
OTHERWISE = {
    "gzip": zarr2(compressor={"id": "gzip", "level": 1}),
    "blosc": zarr2(compressor={"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1}),
    "not compressed": zarr2(compressor=None),
    "the last byte first": zarr2(dtype=">f4"),
    "columns first": zarr2(order="F"),
    "other keys": zarr2(dimension_separator="/"),
    "other keys in zarr 3": zarr3(chunk_key_encoding={"name": "default", "configuration": {"separator": "."}}),
    "old keys in zarr 3": zarr3(chunk_key_encoding={"name": "v2"}),
    "transposed": zarr3([{"name": "transpose", "configuration": {"order": [1, 0]}}, *ZSTD3]),
    "a checksum behind": zarr3([*ZSTD3, {"name": "crc32c"}]),
    "the last byte first in zarr 3": zarr3([{"name": "bytes", "configuration": {"endian": "big"}}, ZSTD3[1]]),
    "gzip in a shard": sharded([11, 5], [ZSTD3[0], {"name": "gzip", "configuration": {"level": 1}}]),
    "the index first": sharded([11, 5], index_location="start"),
    "an index without checksum": sharded([11, 5], index_codecs=ZSTD3[:1]),
    "several to a shard": sharded([1, 5]),
}


class TestTheSameNumbersComeOut:
    @pytest.mark.parametrize("kind", [*AS_ORBAX_WRITES, *OTHERWISE])
    def test_however_they_lie(self, kind, streamed):
        values = numbers(11, 5)
        array = write(values, (AS_ORBAX_WRITES | OTHERWISE)[kind])
        np.testing.assert_array_equal(ZarrRows(array).whole(), values, strict=True)
        np.testing.assert_array_equal(np.concatenate([*ZarrRows(array).blocks()]), values, strict=True)
        rows = ZarrRows(array)
        np.testing.assert_array_equal([rows.row(index) for index in range(11)], values, strict=True)
        assert streamed == ([0, 0, 0] if kind in AS_ORBAX_WRITES else [])

    @pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
    @pytest.mark.parametrize("make", [zarr2, zarr3])
    def test_in_every_dtype(self, make, dtype, streamed):
        values = numbers(11, 5, dtype=dtype)
        blocks = [*ZarrRows(write(values, make())).blocks()]
        np.testing.assert_array_equal(np.concatenate(blocks), values, strict=True)
        assert streamed == [0]

    @pytest.mark.parametrize("shape", [(11,), (11, 5), (11, 2, 3), (1, 100), (11, 100)])
    def test_of_every_rank(self, shape, streamed):
        values = numbers(*shape)
        blocks = [*ZarrRows(write(values, zarr2())).blocks()]
        np.testing.assert_array_equal(np.concatenate(blocks), values, strict=True)
        assert max(block.nbytes for block in blocks) <= max(60, values[0].nbytes)
        assert streamed == [0]

    @pytest.mark.parametrize("height", range(1, 12))
    @pytest.mark.parametrize("make", [zarr2, zarr3])
    def test_in_chunks_of_every_height(self, make, height, streamed):
        """The last chunk is padded to the height of the others."""
        values = numbers(11, 5)
        array = write(values, make(), (height, 5))
        blocks = [*ZarrRows(array).blocks()]
        np.testing.assert_array_equal(np.concatenate(blocks), values, strict=True)
        assert {len(block) for block in blocks} <= {1, 2, 3}
        if height >= 3:
            assert streamed == [*range(-(-11 // height))]
        rows = ZarrRows(array)
        np.testing.assert_array_equal([rows.row(index) for index in range(11)], values, strict=True)
        np.testing.assert_array_equal(ZarrRows(array).whole(), values, strict=True)

    @pytest.mark.parametrize("chunks", [(11, 2), (4, 2), (1, 1)])
    def test_in_chunks_of_part_of_a_row(self, chunks, streamed):
        values = numbers(11, 5)
        array = write(values, zarr2(), chunks)
        np.testing.assert_array_equal(ZarrRows(array).whole(), values, strict=True)
        np.testing.assert_array_equal(np.concatenate([*ZarrRows(array).blocks()]), values, strict=True)
        np.testing.assert_array_equal(ZarrRows(array).row(7), values[7], strict=True)
        assert streamed == []

    def test_rows_out_of_order(self, streamed):
        values, order = numbers(11, 5), [3, 4, 9, 2, 2, 0, 10, 5]
        rows = ZarrRows(write(values, zarr2(), (6, 5)))
        for index in order:
            np.testing.assert_array_equal(rows.row(index), values[index], strict=True)
        assert streamed == [0, 1, 0, 0, 0, 1, 0]

    @pytest.mark.parametrize("kind", AS_ORBAX_WRITES)
    def test_a_chunk_that_was_left_out_for_being_all_zeros(self, kind, streamed):
        zeros = np.zeros((11, 5), np.float32)
        array = write(numbers(11, 5), AS_ORBAX_WRITES[kind])
        del array.kvstore[chunk_key(array)]
        np.testing.assert_array_equal(ZarrRows(array).whole(), zeros, strict=True)
        np.testing.assert_array_equal(np.concatenate([*ZarrRows(array).blocks()]), zeros, strict=True)
        np.testing.assert_array_equal(ZarrRows(array).row(4), zeros[4], strict=True)
        assert streamed == []

    def test_small_chunks_are_tensorstores(self, monkeypatch, streamed):
        values = numbers(11, 5)
        monkeypatch.setattr(zarr_rows, "_SMALL", values.nbytes)
        array = write(values, zarr2())
        np.testing.assert_array_equal(ZarrRows(array).whole(), values, strict=True)
        np.testing.assert_array_equal(np.concatenate([*ZarrRows(array).blocks()]), values, strict=True)
        assert streamed == []


READ = (ZarrRows.whole, lambda rows: [*rows.blocks()], lambda rows: [rows.row(index) for index in range(11)])
DAMAGED = "a damaged chunk|a chunk of (more|less) than|FAILED_PRECONDITION|OUT_OF_RANGE|DATA_LOSS|INVALID_ARGUMENT"


def raw(values):
    return zstandard.compress(values.tobytes())


class TestADamagedChunkIsAnError:
    """... whether it is read as a stream or by TensorStore."""

    @pytest.fixture(params=["streamed", "by TensorStore"])
    def damaged(self, request, monkeypatch):
        """``damaged(bytes)``: an array whose chunk is that."""
        if request.param == "by TensorStore":
            monkeypatch.setattr(zarr_rows, "_SMALL", 1 << 20)

        def damaged(chunk, spec=AS_ORBAX_WRITES["zarr 2"]):
            array = write(numbers(11, 5), spec)
            key = chunk_key(array)
            array.kvstore[key] = chunk(array.kvstore[key])
            return ZarrRows(array)

        return damaged

    @pytest.mark.parametrize(
        "chunk",
        [
            lambda stored: stored[:-1],
            lambda stored: stored[: len(stored) // 2],
            lambda stored: stored[:3],
            lambda _: b"",
            lambda stored: b"\0" + stored[1:],
            lambda stored: stored + b"\0",
            lambda stored: stored + stored,
            lambda _: raw(numbers(12, 5)),
            lambda _: raw(numbers(10, 5)),
            lambda _: raw(numbers(11, 5).astype(np.float16)),
            lambda _: numbers(11, 5).tobytes(),
        ],
        ids=["cut", "half", "tiny", "empty", "flipped", "more", "twice", "long", "short", "dtype", "raw"],
    )
    def test_of_any_kind(self, chunk, damaged):
        for read in READ:
            with pytest.raises(ValueError, match=DAMAGED):
                read(damaged(chunk))

    @pytest.mark.parametrize(
        "chunk",
        [
            lambda stored: stored[:-1],
            lambda stored: stored[:19],
            lambda _: b"",
            lambda stored: b"\0" + stored[1:],
            lambda stored: stored[:-20] + (1 << 40).to_bytes(8, "little") + stored[-12:],
            lambda stored: stored[:-12] + (1 << 40).to_bytes(8, "little") + stored[-4:],
            lambda stored: stored[:-12] + (9).to_bytes(8, "little") + stored[-4:],
            lambda stored: stored[:-20] + (1 << 63).to_bytes(8, "little") + stored[-12:],
        ],
        ids=["cut", "tiny", "empty", "flipped", "begins behind", "ends behind", "ends before", "nowhere"],
    )
    def test_in_a_shard(self, chunk, damaged):
        for read in READ:
            with pytest.raises(ValueError, match=DAMAGED):
                read(damaged(chunk, AS_ORBAX_WRITES["zarr 3 in shards"]))

    def test_in_the_rows_that_pad_the_last_chunk(self):
        array = write(numbers(11, 5), zarr2(), (8, 5))
        array.kvstore["1.0"] = raw(numbers(7, 5))
        with pytest.raises(ValueError, match=r"a chunk of less than \[8, 5\]"):
            list(ZarrRows(array).blocks())


def test_a_chunk_that_would_decompress_without_end_is_not_decompressed():
    """A few KB that are 64 MB of zeros, where 220 bytes are expected."""
    array = write(numbers(11, 5), zarr2())
    array.kvstore["0.0"] = zstandard.compress(bytes(1 << 26))
    for read in READ:
        with pytest.raises(ValueError, match=r"a chunk of more than \[11, 5\]"):
            read(ZarrRows(array))
