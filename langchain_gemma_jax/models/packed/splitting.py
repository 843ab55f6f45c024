"""Splitting of a file's blocks into the arrays of their parts, with one copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.block_formats import BlockFormat
from langchain_gemma_jax.models.packed.unpacking import BlockArrays, Bytes


def split(kind: BlockFormat, blocks: Bytes, targets: Sequence[npt.NDArray[Any]]) -> None:
    """Split blocks into their parts.

    Args:
        kind: the blocks' format.
        blocks: as in a file, uint8 ``[..., block, byte]``, contiguous.
        targets: an array for each of the format's parts, ``[..., block, *shape of the part]``, contiguous.
    """
    raw = blocks.reshape(-1)
    rooms = [target.reshape(-1).view(np.uint8) for target in targets]
    for part, room in zip(kind.parts, rooms, strict=True):
        if part.at is not None:
            # Copied as opaque cells: numpy has a loop for these, and otherwise copies byte by byte.
            cell = f"V{np.dtype(numpy_dtype(part.dtype)).itemsize * math.prod(part.shape)}"
            room.view(cell)[...] = np.ndarray((len(raw) // kind.nbytes,), cell, raw, part.at, (kind.nbytes,))
    if kind.take_apart is not None:
        count = len(raw) // kind.nbytes
        mixed = (
            room.view(numpy_dtype(part.dtype)).reshape(count, *part.shape)
            for part, room in zip(kind.parts, rooms, strict=True)
            if part.at is None
        )
        kind.take_apart(raw.reshape(count, kind.nbytes), *mixed)


def apart(kind: BlockFormat, blocks: Bytes) -> BlockArrays:
    """Return the parts of blocks in new arrays."""
    shapes = ((*blocks.shape[:-1], *part.shape) for part in kind.parts)
    arrays = tuple(np.empty(shape, numpy_dtype(part.dtype)) for shape, part in zip(shapes, kind.parts, strict=True))
    split(kind, blocks, arrays)
    return arrays
