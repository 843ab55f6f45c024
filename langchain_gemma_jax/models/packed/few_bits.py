"""Formats of one, two and three bits whose codes are the numbers, up to scales: Q2_K, Q3_K, TQ1_0, TQ2_0, Q1_0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.packed.unpacking import (
    LANES,
    BlockArrays,
    Bytes,
    Slices,
    f32,
    flat,
    halves,
    joined,
    of_rank,
    shifted,
    signed,
)

_PAIRS = np.arange(0, 8, 2)
_BITS = np.arange(8)
_POWERS = (3 ** np.arange(5)).astype(np.uint8)


def _runs_of_32(packed: Any) -> list[Any]:
    """Return the two-bit numbers of bytes ``[..., 2, 32]``, by their place in the bytes."""
    return [(packed >> np.uint8(shift)) & 3 for shift in _PAIRS.tolist()]


def _of_sixteen(factors: Any, place: int) -> Any:
    """Return the factors ``[..., 16]`` of those sixteens whose codes are at this place: ``[..., 2, 2, 1]``."""
    return flat(factors, 1, 2, 4, 2, 1)[..., place, :, :]


def _with_factors(codes: Any, factors: Any, less: Any = None) -> Any:
    """Return codes ``[..., 2, 32]`` times their factors ``[..., 2, 2, 1]``, minus what is less."""
    numbers = factors * f32(flat(codes, 1, 2, 16))
    return flat(numbers if less is None else numbers - less, 2, 32)


def q2_k(parts: BlockArrays) -> Slices:
    """Unpack codes of two bits, with a scale and a minimum of four bits for each sixteen."""
    scale, least, both, packed = parts
    scales, leasts = halves(both)
    factors, less = f32(scale)[..., None] * f32(scales), f32(least)[..., None] * f32(leasts)
    return tuple(
        _with_factors(codes, _of_sixteen(factors, place), _of_sixteen(less, place))
        for place, codes in enumerate(_runs_of_32(packed))
    )


def q3_k(parts: BlockArrays) -> Slices:
    """Unpack codes of three bits, with a scale of six bits for each sixteen."""
    scale, scales, high, packed = parts
    factors = f32(scale)[..., None] * f32(scales)
    slices = []
    for place, low in enumerate(_runs_of_32(packed)):
        bits = shifted(high, np.array([place, place + 4]))  # of the first half of a block, of the second
        third = flat(bits, 2, 32, 2).swapaxes(-1, -2) & 1
        slices.append(_with_factors(signed(low | (third << 2), 4), _of_sixteen(factors, place)))
    return tuple(slices)


def q3_k_scales(blocks: Bytes, scales: npt.NDArray[np.int8]) -> None:
    """Unpack sixteen scales of six bits: four bits each in eight bytes, and the upper two in four more."""
    first, second, rest = blocks[:, 96:108].copy().view("<u4").T
    words = scales.view("<u4")
    for at, low in enumerate((first, second, first >> 4, second >> 4)):
        words[:, at] = (low & 0x0F0F0F0F) | (((rest >> (2 * at)) & 0x03030303) << 4)
    scales -= np.int8(32)


def tq1_0(parts: BlockArrays) -> Slices:
    """Unpack five ternary digits a byte, four in the last ones: a byte times 3^n has digit n at its top."""
    scale, fives, fours = parts

    def digits(packed: Any, count: int, lanes: int) -> Any:
        grown = packed[..., None, :] * of_rank(_POWERS[:count, None], packed.ndim + 1)
        return flat(((grown.astype("uint16") * 3) >> 8).astype("uint8"), 2, count * lanes // 16, 16)

    runs = (digits(fives[..., :32], 5, 32), digits(fives[..., 32:], 5, 16), digits(fours, 4, 4))
    return (f32(scale)[..., None, None] * signed(joined(*runs), 1),)


def tq2_0(parts: BlockArrays) -> Slices:
    """Unpack ternary digits of two bits."""
    scale, packed = parts
    return tuple(f32(scale)[..., None, None] * signed(codes, 1) for codes in _runs_of_32(packed))


def q1_0(parts: BlockArrays) -> Slices:
    """Unpack signs: a bit that is set means the scale, one that is not its opposite."""
    scale, packed = parts
    bits = (shifted(packed, _BITS) & 1).astype("int8")  # [..., 16, LANES]
    return (f32(scale)[..., None, None] * f32(bits * 2 - 1).reshape(*packed.shape, LANES),)
