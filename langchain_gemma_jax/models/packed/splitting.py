"""Splitting of a file's blocks into the arrays of their parts, with one copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.block_formats import BlockArrays, BlockFormat

Bytes: TypeAlias = npt.NDArray[np.uint8]

_SIX_BITS_AT = 4  # offset of eight scales and eight minima of six bits, in twelve bytes


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
            room.view(cell)[...] = _column(raw, kind, cell, part.at)
    mixed = [room.view("<u4").reshape(-1, 2) for part, room in zip(kind.parts, rooms, strict=True) if part.at is None]
    if mixed:
        _unmix(raw, kind, *mixed)


def apart(kind: BlockFormat, blocks: Bytes) -> BlockArrays:
    """Return the parts of blocks in new arrays."""
    shapes = ((*blocks.shape[:-1], *part.shape) for part in kind.parts)
    arrays = tuple(np.empty(shape, numpy_dtype(part.dtype)) for shape, part in zip(shapes, kind.parts, strict=True))
    split(kind, blocks, arrays)
    return arrays


def _column(raw: Bytes, kind: BlockFormat, dtype: str, at: int) -> npt.NDArray[Any]:
    """Return a view of one field of every block."""
    return np.ndarray((len(raw) // kind.nbytes,), dtype, raw, at, (kind.nbytes,))


def _unmix(raw: Bytes, kind: BlockFormat, scales: npt.NDArray[np.uint32], leasts: npt.NDArray[np.uint32]) -> None:
    """Unpack scales and minima of six bits to bytes, four at a time: the last four bytes hold the missing bits."""
    first, second, rest = (_column(raw, kind, "<u4", _SIX_BITS_AT + at).copy() for at in (0, 4, 8))
    scales[:, 0], leasts[:, 0] = first & 0x3F3F3F3F, second & 0x3F3F3F3F
    scales[:, 1] = (rest & 0x0F0F0F0F) | ((first >> 2) & 0x30303030)
    leasts[:, 1] = ((rest >> 4) & 0x0F0F0F0F) | ((second >> 2) & 0x30303030)
