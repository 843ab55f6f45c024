"""Parts of stored tensors: each is what numpy would cut out, and no other byte is read."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Section
from langchain_gemma_jax.models.seams.tensor_source import (
    Cut,
    CutTensors,
    Part,
    TensorSource,
    cut_parts,
    joint_sections,
    narrowed,
)


class Stored(TensorSource):
    """Tensors in memory, and how many of their bytes were read."""

    location = "memory"

    def __init__(self, **tensors):
        self.tensors, self.taken = tensors, 0

    def names(self):
        return self.tensors.keys()

    def shape(self, name):
        return self.tensors[name].shape

    def dtype(self, name):
        return self.tensors[name].dtype.name

    def read(self, name):
        return self.tensors[name]

    def nbytes(self, name):
        return self.tensors[name].nbytes

    def read_bytes(self, name, begin, target):
        room = target.reshape(-1).view(np.uint8)
        self.taken += room.size
        room[:] = self.tensors[name].reshape(-1).view(np.uint8)[begin : begin + room.size]

    def close(self):
        raise AssertionError("who opened it closes it")


NUMBERS = np.arange(6 * 8 * 10, dtype=np.float32).reshape(6, 8, 10)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("begin", "end"), [(0, 2), (3, 6), (1, 2), (0, 6)])
def test_a_part_is_what_numpy_would_cut_out_however_it_is_read(axis, begin, end):
    stored = Stored(x=NUMBERS)
    slices = CutTensors(stored, {"part": Cut("x", axis, begin, end)})
    wanted = np.ascontiguousarray(NUMBERS.take(range(begin, end), axis))
    assert (slices.shape("part"), slices.dtype("part"), slices.nbytes("part")) == (
        wanted.shape, "float32", wanted.nbytes,
    )  # fmt: skip
    np.testing.assert_array_equal(slices.read("part"), wanted)
    assert stored.taken == wanted.nbytes
    room = np.empty_like(wanted)
    assert slices.read_into("part", room)
    np.testing.assert_array_equal(room, wanted)
    np.testing.assert_array_equal(np.concatenate([rows.copy() for rows in slices.read_rows("part")]), wanted)
    slices.close()


def test_rows_that_are_many_come_in_pieces(monkeypatch):
    monkeypatch.setattr("langchain_gemma_jax.models.seams.tensor_source.PIECE_BYTES", 100)
    wide = NUMBERS.reshape(60, 8)
    pieces = [rows.copy() for rows in CutTensors(Stored(x=wide), {"part": Cut("x", 1, 2, 5)}).read_rows("part")]
    assert len(pieces) > 2
    np.testing.assert_array_equal(np.concatenate(pieces), wide[:, 2:5])


def test_pieces_of_an_array_are_found_in_the_tensors_that_make_it_up():
    spec = ArraySpec((10, 4), "float32", along=0)
    parts = [Part("q", (6, 4)), Part("k", (2, 4)), Part("v", (2, 4))]
    narrow, cuts = cut_parts(spec, parts, (slice(3, 6), slice(7, 8), slice(8, 10)))
    assert [(cuts[part.name], part.shape) for part in narrow] == [
        (Cut("q", 0, 3, 6), (3, 4)),
        (Cut("k", 0, 1, 2), (1, 4)),
        (Cut("v", 0, 0, 2), (2, 4)),
    ]
    across, cuts = cut_parts(spec, parts, (slice(5, 9),))  # one piece, of three tensors
    assert [part.shape for part in across] == [(1, 4), (2, 4), (1, 4)]
    stack = ArraySpec((4, 6, 5), "float32", along=0)
    narrow, cuts = cut_parts(stack, [Part("gate", (4, 3, 5)), Part("up", (4, 3, 5))], (slice(2, 4),))
    assert [cuts[part.name] for part in narrow] == [Cut("gate", 0, 2, 4), Cut("up", 0, 2, 4)]


def test_what_lies_in_another_way_is_read_whole():
    spec = ArraySpec((10, 4), "float32", along=0)
    turned = [Part("x", (4, 10), np.transpose)]
    assert cut_parts(spec, turned, (slice(0, 5),)) is None
    columns = ArraySpec((10, 4), "float32", along=1)
    assert cut_parts(columns, [Part("x", (10, 4))], (slice(0, 1), slice(2, 3))) is None


def test_an_array_goes_as_many_ways_as_the_blocks_that_it_is_stored_in():
    spec = ArraySpec((4, 64), "float32", along=1, sections=(Section("feed-forward", 64),))
    blocks = ArraySpec((4, 2), "float16", along=1, sections=(Section("feed-forward", 64, block=32),))
    assert joint_sections(spec, [blocks, blocks]) == blocks.sections
    assert joint_sections(spec, [spec]) == spec.sections
    assert joint_sections(spec, [blocks, ArraySpec((4,), "float32")]) == ()  # some of it is whole on each device
    assert narrowed(spec, 32) == ArraySpec((4, 32), "float32", along=1)
