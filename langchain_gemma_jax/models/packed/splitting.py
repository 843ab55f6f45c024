"""Blocks of a file taken apart: each part of theirs copied to where it is kept, once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.kinds import BlockArrays, Kind

Bytes: TypeAlias = npt.NDArray[np.uint8]

_SIX_BITS_AT = 4  # where eight scales and eight leasts of six bits lie, in twelve bytes


def split(kind: Kind, blocks: Bytes, targets: Sequence[npt.NDArray[Any]]) -> None:
    """Take blocks apart.

    Args:
        kind: the format that they are in.
        blocks: as in a file, uint8 ``[..., block, byte]``, end to end.
        targets: an array for each of the format's parts, ``[..., block, *shape of the part]``, end to end.
    """
    raw = blocks.reshape(-1)
    rooms = [target.reshape(-1).view(np.uint8) for target in targets]
    for part, room in zip(kind.parts, rooms, strict=True):
        if part.at is not None:
            # Copied as cells without a meaning: numpy has a loop for these, and goes byte by byte otherwise.
            cell = f"V{np.dtype(numpy_dtype(part.dtype)).itemsize * math.prod(part.shape)}"
            room.view(cell)[...] = _column(raw, kind, cell, part.at)
    mixed = [room.view("<u4").reshape(-1, 2) for part, room in zip(kind.parts, rooms, strict=True) if part.at is None]
    if mixed:
        _unmix(raw, kind, *mixed)


def apart(kind: Kind, blocks: Bytes) -> BlockArrays:
    """The parts of blocks, in arrays of their own."""
    shapes = ((*blocks.shape[:-1], *part.shape) for part in kind.parts)
    found = tuple(np.empty(shape, numpy_dtype(part.dtype)) for shape, part in zip(shapes, kind.parts, strict=True))
    split(kind, blocks, found)
    return found


def _column(raw: Bytes, kind: Kind, dtype: str, at: int) -> npt.NDArray[Any]:
    """What stands at one place of every block."""
    return np.ndarray((len(raw) // kind.nbytes,), dtype, raw, at, (kind.nbytes,))


def _unmix(raw: Bytes, kind: Kind, scales: npt.NDArray[np.uint32], leasts: npt.NDArray[np.uint32]) -> None:
    """Make bytes of scales and leasts of six bits, four at a time: the last four bytes hold what others lack."""
    first, second, rest = (_column(raw, kind, "<u4", _SIX_BITS_AT + at).copy() for at in (0, 4, 8))
    scales[:, 0], leasts[:, 0] = first & 0x3F3F3F3F, second & 0x3F3F3F3F
    scales[:, 1] = (rest & 0x0F0F0F0F) | ((first >> 2) & 0x30303030)
    leasts[:, 1] = ((rest >> 4) & 0x0F0F0F0F) | ((second >> 2) & 0x30303030)
