"""Formats whose codes are rows of a grid: the sizes of four or eight numbers, to which signs come.

The grids are in ``grids.py``. Seven bits stand for eight signs where the eighth makes the number of minuses even. The
formats of one bit have no signs: their grids hold -1, 0 and 1, and all numbers of a run are moved by an eighth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.packed.grids import grid
from langchain_gemma_jax.models.packed.unpacking import (
    LANES,
    BlockArrays,
    Bytes,
    Slices,
    f32,
    flat,
    look_up,
    shifted,
)

_BITS = np.arange(8)
_SIGNS = (1 - 2 * ((np.arange(256)[:, None] >> _BITS) & 1)).astype(np.float32)  # [byte, LANES]
_SEVEN = np.arange(128)
_EVEN = (_SEVEN | ((sum(_SEVEN >> bit for bit in range(7)) & 1) << 7)).astype(np.uint8)
_THREES = np.array([0, 3, 6, 9])


def _row(kind: str, index: Any) -> Any:
    return look_up(grid(kind), index)


def _odd(codes: Any) -> Any:
    """Return the scales that codes ``[..., count]`` mean, times two: 1, 3, 5, ..."""
    return f32(codes) + np.float32(0.5)


def _nibbles(packed: Any) -> Any:
    """Return four-bit numbers in the order of their bytes: ``[..., 2 * count]``."""
    return flat(shifted(packed, np.array([0, 4])) & 15, 2, -1)


def _numbers(factors: Any, rows: Any, signs: Any) -> Slices:
    """Return what rows of a grid come to, with the signs of each eight numbers in a byte.

    Args:
        factors: ``[..., run]``.
        rows: ``[..., lane]``: all the numbers of a block in order, whatever the axes.
        signs: ``[..., eight]``.
    """
    eights = rows.reshape(*signs.shape, LANES) * look_up(_SIGNS, signs)
    runs = factors.shape[-1]
    sized = flat(factors, 1, runs, 1, 1) * flat(eights, 2, runs, -1, LANES)
    return (flat(sized, 3, -1, LANES),)


def _of_tops(sevens: Any) -> Any:
    """Return the scales whose four bits are at the top of four bytes each: ``[..., 8]``."""
    tops = flat(sevens >> 7, 1, 8, 4)
    return _odd(tops[..., 0] | tops[..., 1] << 1 | tops[..., 2] << 2 | tops[..., 3] << 3)


def _sevens_and_tops(words: npt.NDArray[np.uint32], sevens: Bytes) -> None:
    """Take four times seven signs and a scale of four bits apart: to bytes of seven signs and a bit of the scale."""
    for at in range(4):
        sevens[:, at::4] = ((words >> (7 * at)) & 127) | (((words >> (28 + at)) & 1) << 7)


def iq2_xxs(parts: BlockArrays) -> Slices:
    """Unpack eights of 32: a byte for the row of each, then seven signs of each, and a scale."""
    scale, index, sevens = parts
    factors = f32(scale)[..., None] * _of_tops(sevens) * np.float32(0.25)
    return _numbers(factors, _row("IQ2_XXS", index), look_up(_EVEN, sevens & 127))


def iq2_xxs_parts(blocks: Bytes, index: Bytes, sevens: Bytes) -> None:
    """Take the places of rows and the signs apart, which take turns in the file."""
    words = blocks[:, 2:66].copy().view("<u4")
    index.view("<u4")[...] = words[:, ::2]
    _sevens_and_tops(words[:, 1::2], sevens)


def iq2_xs(parts: BlockArrays) -> Slices:
    """Unpack eights of nine bits for the row and seven for signs, with a scale for each sixteen."""
    scale, low, sevens, scales = parts
    index = low.astype("uint16") | ((sevens >> 7).astype("uint16") << 8)
    factors = f32(scale)[..., None] * _odd(_nibbles(scales)) * np.float32(0.25)
    return _numbers(factors, _row("IQ2_XS", index), look_up(_EVEN, sevens & 127))


def iq2_xs_parts(blocks: Bytes, low: Bytes, sevens: Bytes) -> None:
    """Take eight bits of the places of rows apart from the ninth, which goes to the top of the signs."""
    words = blocks[:, 2:66].copy().view("<u2")
    low[...] = words & 255
    sevens[...] = (words >> 9) | ((words >> 1) & 128)


def iq2_s(parts: BlockArrays) -> Slices:
    """Unpack eights of ten bits for the row, with all signs, and a scale for each sixteen."""
    scale, low, signs, high, scales = parts
    upper = flat(shifted(high, np.array([0, 2, 4, 6])) & 3, 2, -1)
    index = low.astype("uint16") | (upper.astype("uint16") << 8)
    factors = f32(scale)[..., None] * _odd(_nibbles(scales)) * np.float32(0.25)
    return _numbers(factors, _row("IQ2_S", index), signs)


def iq3_xxs(parts: BlockArrays) -> Slices:
    """Unpack fours of 32: a byte for the row of each, then seven signs of each eight, and a scale."""
    scale, index, sevens = parts
    factors = f32(scale)[..., None] * _of_tops(sevens) * np.float32(0.5)
    return _numbers(factors, _row("IQ3_XXS", index), look_up(_EVEN, sevens & 127))


def iq3_xxs_sevens(blocks: Bytes, sevens: Bytes) -> None:
    """Take signs and scales apart."""
    _sevens_and_tops(blocks[:, 66:98].copy().view("<u4"), sevens)


def iq3_s(parts: BlockArrays) -> Slices:
    """Unpack fours of nine bits for the row, with all signs, and a scale for each 32."""
    scale, low, high, signs, scales = parts
    ninth = flat(shifted(high, _BITS) & 1, 2, -1)
    index = low.astype("uint16") | (ninth.astype("uint16") << 8)
    factors = f32(scale)[..., None] * f32(1 + 2 * _nibbles(scales))
    return _numbers(factors, _row("IQ3_S", index), signs)


def _moved(factors: Any, rows: Any, minus: Any) -> Slices:
    """Return rows ``[..., eight, LANES]`` moved by an eighth, down where ``minus [..., eight]`` is set."""
    by = np.float32(0.125) - f32(minus) * np.float32(0.25)
    moved, runs = rows + by[..., None], factors.shape[-1]
    sized = flat(factors, 1, runs, 1, 1) * flat(moved, 2, runs, -1, LANES)
    return (flat(sized, 3, -1, LANES),)


def iq1_s(parts: BlockArrays) -> Slices:
    """Unpack eights of eleven bits for the row, with a scale of three bits and a direction for each 32."""
    scale, low, words = parts
    upper = flat(shifted(words, _THREES) & 7, 2, -1)
    factors = f32(scale)[..., None] * f32(2 * ((words >> 12) & 7) + 1)
    minus = flat(shifted(words >> 15, np.zeros(4)), 2, -1)  # of each of four eights
    return _moved(factors, _row("IQ1_S", low.astype("uint16") | (upper << 8)), minus)


def iq1_m(parts: BlockArrays) -> Slices:
    """Unpack eights of eleven bits for the row and one for the direction, with a scale for each sixteen."""
    scale, low, high, words = parts
    each = flat(shifted(high, np.array([0, 4])), 2, -1)
    factors = f32(scale)[..., None] * f32(2 * flat(shifted(words, _THREES) & 7, 2, -1) + 1)
    rows = _row("IQ1_S", low.astype("uint16") | ((each & 7).astype("uint16") << 8))
    return _moved(factors, rows, (each >> 3) & 1)


def iq1_m_scale(blocks: Bytes, scale: npt.NDArray[np.float16]) -> None:
    """Put together a block's scale: four bits of it are at the top of each of four words."""
    words = blocks[:, 48:56].copy().view("<u2") >> 12
    scale.view("<u2")[...] = words[:, 0] | words[:, 1] << 4 | words[:, 2] << 8 | words[:, 3] << 12
