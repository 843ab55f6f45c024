from __future__ import annotations

import json
import os
import random
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from langchain_gemma_jax.errors import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    GemmaJaxError,
    TensorMismatchError,
    UnsafeCheckpointError,
)
from langchain_gemma_jax.models.checkpoint.safetensors import BITS, open_safetensors

MAPS, DESCRIPTORS = Path("/proc/self/maps"), Path("/proc/self/fd")


def entry(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def build(header, data=b"", length=None):
    """A safetensors file from a header (text, bytes or an object), well-formed or not."""
    if not isinstance(header, bytes):
        header = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def put(folder, content, name="model.safetensors"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def put_index(folder, weight_map):
    text = weight_map if isinstance(weight_map, str) else json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)


SOUND = {"a": entry(0, 8, [2]), "b": entry(8, 32, [2, 3]), "c": entry(32, 34, [1], "BF16")}


class TestSoundFiles:
    @pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
    def test_every_value_of_what_the_reference_library_wrote(self, tmp_path, dtype):
        stored = {
            "matrix": np.arange(6).reshape(2, 3).astype(dtype),
            "cube": np.arange(24).reshape(2, 3, 4).astype(dtype),
            "vector": np.array([1.5, -np.inf, np.nan], dtype),
            "number": np.array(7, dtype),
            "empty": np.zeros((0, 3), dtype),
        }
        safetensors.numpy.save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with open_safetensors(tmp_path) as source:
            assert set(source.names()) == set(stored)
            for name, array in stored.items():
                assert source.shape(name) == array.shape
                assert source.dtype(name) == array.dtype.name
                assert source.read(name).tobytes() == array.tobytes()
                if array.ndim:
                    assert b"".join(rows.tobytes() for rows in source.read_rows(name)) == array.tobytes()

    def test_tensors_need_not_be_aligned(self, tmp_path):
        values = np.arange(4, dtype=np.float32)
        header = json.dumps({"a": entry(0, 16, [4])})
        header += " " * (1 + -len(header) % 8)  # the data begins at an odd byte
        with open_safetensors(put(tmp_path, build(header, values.tobytes()))) as source:
            np.testing.assert_array_equal(source.read("a"), values)

    def test_rows_are_read_into_one_small_room(self, tmp_path):
        values = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
        safetensors.numpy.save_file({"a": values}, tmp_path / "model.safetensors")
        with open_safetensors(tmp_path) as source:
            tracemalloc.start()
            places = []
            for number, rows in enumerate(source.read_rows("a")):
                assert rows[:, 7].tolist() == values[number * len(rows) :][: len(rows), 7].tolist()
                places.append(rows.ctypes.data)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert len(places) == 4
        assert len(set(places)) == 1
        assert peak < 3 << 20

    @pytest.mark.skipif(not MAPS.exists(), reason="only Linux lists what is mapped")
    def test_no_file_is_ever_mapped(self, tmp_path):
        with open_safetensors(put(tmp_path, build({"a": entry(0, 8, [2])}, struct.pack("<2f", 3, 4)))) as source:
            found = source.read("a")
            assert open_maps(tmp_path) == 0
        source.close()
        assert found.tolist() == [3, 4]

    def test_where_the_system_cannot_read_at_a_place(self, tmp_path, monkeypatch):
        monkeypatch.delattr(os, "preadv")
        values = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
        safetensors.numpy.save_file({"a": values, "b": values[::-1].copy()}, tmp_path / "model.safetensors")
        with open_safetensors(tmp_path) as source, ThreadPoolExecutor(2) as threads:
            for found, wanted in zip(threads.map(source.read, "abab"), (values, values[::-1]) * 2, strict=True):
                np.testing.assert_array_equal(found, wanted)

    def test_shards_are_one_source(self, tmp_path):
        put(tmp_path, build({"a": entry(0, 4, [1])}, struct.pack("<f", 1)), "model-00001-of-00002.safetensors")
        put(tmp_path, build({"b": entry(0, 4, [1])}, struct.pack("<f", 2)), "model-00002-of-00002.safetensors")
        put_index(tmp_path, {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"})
        with open_safetensors(tmp_path) as source:
            assert sorted(source.names()) == ["a", "b"]
            assert source.read("b").tolist() == [2]

    def test_one_file_of_any_name_will_do(self, tmp_path):
        with open_safetensors(put(tmp_path, build({"a": entry(0, 4, [1])}, bytes(4)), "tuned.safetensors")) as source:
            assert list(source.names()) == ["a"]

    def test_a_dtype_that_parameters_cannot_have_is_named_and_not_read(self, tmp_path):
        put(tmp_path, build({"a": entry(0, 2, [2], "F8_E4M3"), "b": entry(2, 3, [2], "F4")}, bytes(3)))
        with open_safetensors(tmp_path) as source:
            assert [source.dtype("a"), source.dtype("b")] == ["F8_E4M3", "F4"]
            with pytest.raises(TensorMismatchError, match=r"'a' in one of F32.*found F8_E4M3"):
                source.read("a")


MALFORMED = {
    # the length of the header
    "an empty file": b"",
    "seven bytes": b"\0" * 7,
    "eight bytes, a header of nothing": bytes(8),
    "a header of more than 100 MB": build("{}", length=100_000_001),
    "a length of 2**64 - 1": build("{}", length=2**64 - 1),
    "a header longer than the file": build("{}", length=1000),
    "cut inside the header": build(SOUND, bytes(34))[:40],
    # the header as JSON
    "no JSON": build("{'a': 1}"),
    "not UTF-8": build(b'{"\xff\xfe": 1}'),
    "a list": build([1, 2]),
    "a number": build("7"),
    "NaN": build('{"a": NaN}'),
    "a comma too many": build('{"a": {},}'),
    "brackets 100,000 deep": build("[" * 100_000),
    "a number of 5,000 digits": build('{"a": ' + "9" * 5000 + "}"),
    "a name twice": build(
        '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        bytes(8),
    ),
    "shape twice": build('{"a": {"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    # one entry
    "an entry that is a list": build({"a": [0, 4]}, bytes(4)),
    "no dtype": build({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "no shape": build({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)),
    "no offsets": build({"a": {"dtype": "F32", "shape": [1]}}, bytes(4)),
    "a field that the format does not have": build({"a": entry(0, 4, [1]) | {"device": "cpu"}}, bytes(4)),
    "an unknown dtype": build({"a": entry(0, 4, [1], "F31")}, bytes(4)),
    "a dtype in lower case": build({"a": entry(0, 4, [1], "f32")}, bytes(4)),
    "a dtype that is a list": build({"a": entry(0, 4, [1], ["F32"])}, bytes(4)),
    "a negative size": build({"a": entry(0, 4, [-1])}, bytes(4)),
    "two negative sizes": build({"a": entry(0, 4, [-1, -1])}, bytes(4)),
    "a fractional size": build({"a": entry(0, 4, [1.0])}, bytes(4)),
    "a size that is true": build({"a": entry(0, 4, [True])}, bytes(4)),
    "a size in quotes": build({"a": entry(0, 4, ["1"])}, bytes(4)),
    "a shape that is a number": build({"a": entry(0, 4, 1)}, bytes(4)),
    "a size of 2**63": build({"a": entry(0, 4, [2**63])}, bytes(4)),
    "sizes whose product wraps round to 4": build({"a": entry(0, 4, [2**62, 4, 1])}, bytes(4)),
    "an impossible shape behind a 0": build({"a": entry(0, 0, [0, 2**62, 2**62])}),
    "a million dimensions": build({"a": entry(0, 4, [2**62] * 1_000_000)}, bytes(4)),
    "a shape larger than its bytes": build({"a": entry(0, 4, [2])}, bytes(4)),
    "a shape smaller than its bytes": build({"a": entry(0, 8, [1])}, bytes(8)),
    "half a byte": build({"a": entry(0, 1, [1], "F4")}, bytes(1)),
    "one offset": build({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
    "three offsets": build({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 8]}}, bytes(4)),
    "offsets that are a number": build({"a": {"dtype": "F32", "shape": [1], "data_offsets": 4}}, bytes(4)),
    "offsets in quotes": build({"a": {"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}}, bytes(4)),
    "offsets the wrong way round": build({"a": entry(4, 0, [1])}, bytes(4)),
    "a negative offset": build({"a": entry(-4, 0, [1])}, bytes(4)),
    "metadata that is a list": build({"__metadata__": [], "a": entry(0, 4, [1])}, bytes(4)),
    "metadata with a number": build({"__metadata__": {"a": 1}, "a": entry(0, 4, [1])}, bytes(4)),
    # all of them together
    "cut inside the data": build(SOUND, bytes(33)),
    "no data at all": build(SOUND),
    "bytes after the last tensor": build(SOUND, bytes(35)),
    "an overlap": build({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, bytes(12)),
    "two tensors on the same bytes": build({"a": entry(0, 8, [2]), "b": entry(0, 8, [2])}, bytes(8)),
    "a hole": build({"a": entry(0, 4, [1]), "b": entry(8, 12, [1])}, bytes(12)),
    "a hole at the start": build({"a": entry(4, 8, [1])}, bytes(8)),
    "a tensor beyond the file": build({"a": entry(0, 4, [1]), "b": entry(4, 2**40, [(2**40 - 4) // 4])}, bytes(8)),
}


class TestMalformedFiles:
    def test_the_corpus_is_large(self):
        assert len(MALFORMED) >= 40

    @pytest.mark.long
    @pytest.mark.parametrize("name", MALFORMED)
    def test_is_refused_before_anything_is_allocated(self, tmp_path, name):
        content = MALFORMED[name]
        path = put(tmp_path, content) / "model.safetensors"
        tracemalloc.start()
        with pytest.raises(CorruptCheckpointError) as caught:
            open_safetensors(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert caught.value.path == str(path)
        assert caught.value.expected
        assert caught.value.found
        assert len(str(caught.value)) < 1000
        assert peak < 1_000_000 + 20 * len(content)  # JSON objects cost more than their text

    @pytest.mark.parametrize("name", MALFORMED)
    def test_none_of_them_is_a_file_that_the_reference_library_reads_better(self, name):
        """Nothing here is refused out of pedantry, but for what that library lets pass and should not."""
        lenient = {
            "bytes after the last tensor",
            "a field that the format does not have",
            "a name twice",
            "shape twice",
            "an impossible shape behind a 0",
        }
        try:
            safetensors.deserialize(MALFORMED[name])
        except safetensors.SafetensorError:
            return
        assert name in lenient

    def test_what_passes_here_passes_the_reference_library_too(self, tmp_path):
        chance = random.Random(0)
        sound, passed = build(SOUND, bytes(34)), 0
        header_end = len(sound) - 34
        for _ in range(800):
            mutated = bytearray(sound)
            for _ in range(chance.randint(1, 3)):
                where = chance.randrange(header_end)
                mutated[where] = chance.choice([chance.randrange(256), *b'0123456789[]{},:"'])
            try:
                open_safetensors(put(tmp_path, bytes(mutated))).close()
            except GemmaJaxError:
                continue
            safetensors.deserialize(bytes(mutated))
            passed += 1
        assert 5 < passed < 700  # both happen

    @pytest.mark.parametrize(
        ("name", "says"),
        {
            "seven bytes": r"8 bytes with the length of the header, found a file of 7 bytes",
            "a header longer than the file": r"a header of 1,000 bytes, found a file of 10 bytes\. .* incomplete",
            "cut inside the data": r"found 231 bytes\. .* incomplete",
            "bytes after the last tensor": r"found 233 bytes\.\n",
            "an overlap": r"'b' to begin at byte \d+, .* found an overlap: it begins at byte \d+",
            "a hole": r"'b' to begin at byte \d+, .* found a hole",
            "a shape larger than its bytes": r"8 bytes for 'a', F32 of shape \[2\], found 4 bytes",
            "a name twice": r"found the name 'a' twice",
        }.items(),
    )
    def test_the_message_says_what_is_wrong(self, tmp_path, name, says):
        with pytest.raises(CorruptCheckpointError, match=says):
            open_safetensors(put(tmp_path, MALFORMED[name]))

    def test_a_header_of_more_than_100_mb_that_is_really_there(self, tmp_path):
        path = put(tmp_path, build("", length=150_000_000)) / "model.safetensors"
        with path.open("r+b") as file:
            file.truncate(200_000_000)  # a hole on the disk
        tracemalloc.start()
        with pytest.raises(CorruptCheckpointError, match="at most 100,000,000 bytes, found a length of 150,000,000"):
            open_safetensors(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000_000

    def test_a_name_that_cannot_be_printed_or_is_very_long(self, tmp_path):
        name = "\ud800" + "x" * 100_000
        with pytest.raises(CorruptCheckpointError) as caught:
            open_safetensors(put(tmp_path, build({name: 1})))
        assert len(str(caught.value).encode()) < 1000

    @pytest.mark.skipif(not DESCRIPTORS.exists(), reason="only Linux lists what is open")
    def test_no_file_stays_open_after_a_failure(self, tmp_path):
        shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
        put(tmp_path, build({"a": entry(0, 4, [1])}, bytes(4)), shards["a"])
        put(tmp_path, b"broken", shards["b"])
        put_index(tmp_path, shards)
        with pytest.raises(CorruptCheckpointError) as caught:
            open_safetensors(tmp_path)
        assert open_files(tmp_path) == []
        assert caught.traceback, "while the error, and every frame of it, is still held"


def open_files(folder):
    targets = (os.path.realpath(descriptor) for descriptor in DESCRIPTORS.iterdir())
    return [target for target in targets if target.startswith(str(folder))]


def open_maps(folder):
    return MAPS.read_text().count(str(folder))


class TestIndex:
    @pytest.mark.parametrize(
        "escape",
        [
            "../model.safetensors",
            "/etc/model.safetensors",
            "a/b.safetensors",
            "..\\b.safetensors",
            "..",
            "",
            "a.safetensors\0",
            "\ud800.safetensors",
            "x" * 5000 + ".safetensors",
        ],
    )
    def test_only_files_of_the_folder(self, tmp_path, escape):
        put_index(tmp_path, {"a": escape})
        with pytest.raises(UnsafeCheckpointError, match=r"a \.safetensors file of this folder for 'a'"):
            open_safetensors(tmp_path)

    def test_a_pickle_is_not_a_shard(self, tmp_path):
        (tmp_path / "pytorch_model.bin").write_bytes(b"never read")
        put_index(tmp_path, {"a": "pytorch_model.bin"})
        with pytest.raises(UnsafeCheckpointError, match=r"pytorch_model\.bin"):
            open_safetensors(tmp_path)

    @pytest.mark.parametrize(
        "text", ["{}", "[]", "", '{"weight_map": {}}', '{"weight_map": []}', '{"weight_map": {"a": 1}}']
    )
    def test_malformed(self, tmp_path, text):
        put_index(tmp_path, text)
        with pytest.raises(CorruptCheckpointError, match=r"index\.json"):
            open_safetensors(tmp_path)

    def test_a_missing_shard_is_named(self, tmp_path):
        put_index(tmp_path, {"a": "model-00001-of-00001.safetensors"})
        with pytest.raises(CheckpointNotFoundError, match=r"model-00001-of-00001\.safetensors.*found nothing"):
            open_safetensors(tmp_path)

    def test_a_tensor_that_is_not_in_its_shard(self, tmp_path):
        put(tmp_path, build({"a": entry(0, 4, [1])}, bytes(4)), "one.safetensors")
        put_index(tmp_path, {"a": "one.safetensors", "b": "one.safetensors"})
        with pytest.raises(CorruptCheckpointError, match=r"one\.safetensors: expected 'b', which .* says is in it"):
            open_safetensors(tmp_path)

    def test_a_tensor_in_two_shards(self, tmp_path):
        put(tmp_path, build({"a": entry(0, 4, [1])}, bytes(4)), "one.safetensors")
        put(tmp_path, build({"a": entry(0, 4, [1]), "b": entry(4, 8, [1])}, bytes(8)), "two.safetensors")
        put_index(tmp_path, {"a": "one.safetensors", "b": "two.safetensors"})
        with pytest.raises(CorruptCheckpointError, match="no tensor twice, as 'a' is"):
            open_safetensors(tmp_path)

    def test_a_tensor_that_the_index_forgot_is_not_lost(self, tmp_path):
        put(tmp_path, build({"a": entry(0, 4, [1]), "b": entry(4, 8, [1])}, bytes(8)), "one.safetensors")
        put_index(tmp_path, {"a": "one.safetensors"})
        with open_safetensors(tmp_path) as source:
            assert sorted(source.names()) == ["a", "b"]

    def test_shards_without_an_index_are_not_guessed_at(self, tmp_path):
        for number in (1, 2):
            put(tmp_path, build({"a": entry(0, 4, [1])}, bytes(4)), f"model-0000{number}-of-00002.safetensors")
        with pytest.raises(CheckpointNotFoundError, match=r"model\.safetensors\.index\.json, found model-00001"):
            open_safetensors(tmp_path)


class TestLinks:
    """More of this in test_links.py; here, that the reader asks."""

    @pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "one.safetensors"])
    def test_a_link_out_of_the_folder(self, tmp_path, name):
        outside, folder = tmp_path / "outside", tmp_path / "model"
        folder.mkdir()
        put(outside, build({"a": entry(0, 4, [1])}, bytes(4)))
        put(outside, json.dumps({"weight_map": {"a": "model.safetensors"}}).encode(), "model.safetensors.index.json")
        target = name if name.startswith("model") else "model.safetensors"
        (folder / name).symlink_to(outside / target)
        if name == "one.safetensors":
            put_index(folder, {"a": name})
        with pytest.raises(UnsafeCheckpointError, match=r"inside the model's folder, found a link to .*outside"):
            open_safetensors(folder)


def test_every_dtype_of_the_format_is_known():
    """A new one would be called corrupt: then it belongs in BITS."""
    for name, bits in BITS.items():
        count = 8 // np.gcd(8, bits)
        size = int(count * bits // 8)
        safetensors.deserialize(build({"a": entry(0, size, [int(count)], name)}, bytes(size)))


def test_a_tensor_is_read_to_where_it_is_to_be(tmp_path):
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(8, dtype=np.float32).reshape(4, 2)
    safetensors.numpy.save_file({"a": first, "b": second}, tmp_path / "model.safetensors")
    room = np.zeros((6, 2), np.float32)
    with open_safetensors(tmp_path) as source:
        assert source.read_into("b", room[1:5])
    assert np.array_equal(room[1:5], second)
    assert not room[[0, 5]].any()


def test_a_file_that_is_cut_off_while_it_is_read_is_named(tmp_path):
    safetensors.numpy.save_file({"a": np.ones((300, 1000), np.float32)}, tmp_path / "model.safetensors")
    with open_safetensors(tmp_path) as source:
        with (tmp_path / "model.safetensors").open("r+b") as file:
            file.truncate(400_000)
        with pytest.raises(CorruptCheckpointError, match="as when it was opened"):
            source.read_into("a", np.empty((300, 1000), np.float32))
