"""Arrays in a mapped file: where they lie, and who may write to them."""

from __future__ import annotations

import gc
import os
from itertools import pairwise

import numpy as np

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.mapped.array_file import HEADER, ArrayFile, ArrayPlaces
from langchain_gemma_jax.models.seams.params import leaves
from tests.models.mapped.mapping import maps, model_of, until_kept

SPECS = [
    (("embed",), ArraySpec((300, 7), "int8")),
    (("ple_embed",), (ArraySpec((1000, 700), "int8"), ArraySpec((1000,), "float16"))),
    (("layers", 0, "norm"), ArraySpec((3,), "float32")),
    (("layers", 0, "none"), ArraySpec((0, 4), "float32")),
]


def test_arrays_begin_where_jax_takes_them_over_and_tables_on_pages_of_their_own():
    places = ArrayPlaces.of(SPECS, lambda path: path == ("ple_embed",))
    assert all(at % 64 == 0 and at >= HEADER for each in places.at.values() for at in each)
    ((begin, size),) = places.by_row
    assert begin % (2 << 20) == size % (2 << 20) == 0
    assert places.at["ple_embed",][0] == begin
    assert places.at["layers", 0, "norm"][0] >= begin + size
    ends = sorted((at, at + size) for at, size in _spans(places))
    assert all(one[1] <= other[0] for one, other in pairwise(ends))
    assert ends[-1][1] <= places.size


def _spans(places):
    for path, specs in SPECS:
        for at, spec in zip(places.at[path], specs if isinstance(specs, tuple) else (specs,), strict=True):
            yield at, spec.nbytes


def test_what_is_filled_is_there_for_who_maps_the_file(tmp_path):
    places = ArrayPlaces.of(SPECS, lambda path: path == ("ple_embed",))
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    draft = ArrayFile(fd, places, filled=False)
    rng, put = np.random.default_rng(0), []
    for path, specs in SPECS:
        empty = draft.empty(path)
        for spec in specs if isinstance(specs, tuple) else (specs,):
            array = empty(spec)
            array[...] = rng.integers(-9, 9, spec.shape)
            put.append(array.tobytes())
    draft.seal()
    found = [ArrayFile(fd, places, filled=True).arrays(path, specs) for path, specs in SPECS]
    flat = [array for each in found for array in (each if isinstance(each, tuple) else (each,))]
    assert [array.tobytes() for array in flat] == put
    assert not any(array.flags.writeable for array in flat)
    os.close(fd)


def test_jax_takes_mapped_arrays_over_without_a_copy(packed_file, weight_files):
    model_of(packed_file, weight_files)
    until_kept(weight_files)
    model = model_of(packed_file, weight_files)
    (mapped,) = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in maps()
        if weight_files.names()[0] in line and line.split()[1] == "r--s"
    ]
    for array in leaves(model.params):
        assert mapped[0] <= array.unsafe_buffer_pointer() < mapped[1]
    model.close()
    del array, model
    gc.collect()  # JAX drops its references at the next one
    assert weight_files.names()[0] not in "".join(maps())


def test_a_filled_file_is_not_written_to_any_more(packed_file, weight_files):
    model = model_of(packed_file, weight_files)
    until_kept(weight_files)
    place = min(array.unsafe_buffer_pointer() for array in leaves(model.params))
    (access,) = [
        line.split()[1]
        for line in maps()
        if int(line.split("-")[0], 16) <= place < int(line.split()[0].split("-")[1], 16)
    ]
    assert access == "r--s"
