"""Blocks of every kind, taken apart."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS
from langchain_gemma_jax.models.packed.splitting import apart, split


def any_blocks(kind, rng, rows=6):
    """Any bytes at all: scales that are infinite, not a number, or too small for anything else included."""
    blocks = 3 if kind.elements > 1 else 70
    return rng.integers(0, 256, (rows, blocks, kind.nbytes), dtype=np.uint8)


@pytest.mark.parametrize("kind", BLOCK_FORMATS.values(), ids=lambda kind: kind.name)
def test_parts_have_the_bytes_of_the_blocks(kind):
    raw = any_blocks(kind, np.random.default_rng(0))
    parts = apart(kind, raw)
    rooms = [np.full((2, *part.shape), 7, part.dtype) for part in parts]
    split(kind, raw[1:], [room[1, 1:] for room in rooms])  # to a place among others, which stay as they are
    for room, part in zip(rooms, parts, strict=True):
        np.testing.assert_array_equal(room[1, 1:].view(np.uint8), part[1:].view(np.uint8))
        assert (room[0] == 7).all()
        assert (room[1, 0] == 7).all()
    assert [(part.dtype, part.shape[2:]) for part in parts] == [
        (numpy_dtype(part.dtype), part.shape) for part in kind.parts
    ]
    assert all(part.flags.c_contiguous for part in parts)
    blocks = parts[0].shape[0] * parts[0].shape[1]
    assert blocks * kind.nbytes <= sum(part.nbytes for part in parts) <= 1.04 * blocks * kind.nbytes
