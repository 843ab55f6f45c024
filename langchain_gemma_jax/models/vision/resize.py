"""Resizing of pictures with antialiasing, by the filters of the models' training.

Pixels stay bytes. As in imaging libraries, a picture is resized first in width and then in height, in fixed-point
numbers with 22 fractional bits, and rounded to bytes after each. So a result differs from theirs by one level at most.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Filter: TypeAlias = Literal["bilinear", "bicubic"]
Pixels: TypeAlias = npt.NDArray[np.uint8]

_BITS = 22
_REACH = {"bilinear": 1.0, "bicubic": 2.0}
_ROWS_AT_ONCE = 64  # so that the sums stay in the processor's cache


def resize(pixels: Pixels, height: int, width: int, kind: Filter) -> Pixels:
    """Return ``[height, width, channel]`` of a picture ``[row, column, channel]``."""
    if pixels.shape[1] != width:
        pixels = _along_columns(pixels, width, kind)
    if pixels.shape[0] != height:
        turned = _along_columns(np.ascontiguousarray(pixels.swapaxes(0, 1)), height, kind)
        pixels = np.ascontiguousarray(turned.swapaxes(0, 1))
    return pixels


def _along_columns(pixels: Pixels, width: int, kind: Filter) -> Pixels:
    first, weights = _taps(pixels.shape[1], width, kind)
    last = pixels.shape[1] - 1
    resized = np.empty((pixels.shape[0], width, pixels.shape[2]), np.uint8)
    for begin in range(0, len(pixels), _ROWS_AT_ONCE):
        rows = pixels[begin : begin + _ROWS_AT_ONCE]
        total = np.full((len(rows), width, pixels.shape[2]), 1 << (_BITS - 1), np.int32)
        for tap in range(weights.shape[1]):
            at = np.minimum(first + tap, last)  # beyond the end of a filter its weights are zero
            total += rows[:, at].astype(np.int32) * weights[:, tap][None, :, None]
        resized[begin : begin + len(rows)] = np.clip(total >> _BITS, 0, 255)
    return resized


@lru_cache(maxsize=64)
def _taps(size: int, wanted: int, kind: Filter) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the first source column of each new column, and the weights of the columns from there: ``[new, tap]``."""
    scale = size / wanted
    stretch = max(scale, 1.0)  # a smaller picture is blurred, and a larger one interpolated
    reach = _REACH[kind] * stretch
    centers = (np.arange(wanted) + 0.5) * scale
    first = np.maximum((centers - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((centers + reach + 0.5).astype(np.int64), size)
    taps = np.arange(math.ceil(reach) * 2 + 1)
    at = (taps[None, :] + first[:, None] - centers[:, None] + 0.5) / stretch
    weights = np.where(first[:, None] + taps < end[:, None], _CURVES[kind](np.abs(at)), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    scaled = weights * (1 << _BITS)
    return first, np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32)


def _triangle(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(1.0 - x, 0.0)


def _cubic(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Keys' cubic with a = -0.5."""
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


_CURVES = {"bilinear": _triangle, "bicubic": _cubic}
