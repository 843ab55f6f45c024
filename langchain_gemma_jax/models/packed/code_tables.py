"""Formats whose codes of four bits are looked up in a table of sixteen numbers: IQ4_NL, IQ4_XS, MXFP4, NVFP4.

The tables are facts of these formats. A test compares them with those of the ``gguf`` package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.packed.unpacking import BlockArrays, Bytes, Slices, f32, flat, halves, look_up

NOT_LINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
E2M1 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)
"""Twice the numbers of four bits that have two bits of an exponent and one of a fraction."""


def _half_powers_of_two() -> npt.NDArray[np.float32]:
    """Return half of what each byte means as an exponent of two, counted from -127."""
    bits = [(1 << 21) << byte if byte < 2 else (byte - 1) << 23 for byte in range(256)]
    return np.array(bits, np.uint32).view(np.float32)


def _half_e4m3() -> npt.NDArray[np.float32]:
    """Return half of what each byte means as a float: four bits of an exponent, three of a fraction, no sign.

    The package takes one byte for zero that elsewhere is no number, and takes no notice of the uppermost bit otherwise.
    """
    table = np.zeros(256, np.float32)
    for byte in range(256):
        exponent, fraction = byte >> 3 & 15, byte & 7
        table[byte] = fraction * 2.0**-10 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 8)
    table[0x7F] = 0
    return table


HALF_E8M0, HALF_E4M3 = _half_powers_of_two(), _half_e4m3()


def iq4_nl(parts: BlockArrays) -> Slices:
    """Unpack codes with a scale for each 32."""
    scale, packed = parts
    return tuple(f32(scale)[..., None] * look_up(NOT_LINEAR, codes) for codes in halves(packed))


def iq4_xs(parts: BlockArrays) -> Slices:
    """Unpack the same codes, with a scale of six bits for each 32."""
    scale, scales, packed = parts
    factors = (f32(scale)[..., None] * f32(scales))[..., None]
    return tuple(factors * look_up(NOT_LINEAR, codes) for codes in halves(packed))


def iq4_xs_scales(blocks: Bytes, scales: npt.NDArray[np.int8]) -> None:
    """Unpack eight scales of six bits: four bits each in four bytes, and the upper two in two more."""
    high, low = blocks[:, 2:4].copy().view("<u2")[:, 0], blocks[:, 4:8]
    for at in range(8):
        upper = ((high >> (2 * at)) & 3).astype(np.uint8)
        scales[:, at] = (((low[:, at // 2] >> (4 * (at % 2))) & 15) | (upper << 4)).astype(np.int8) - np.int8(32)


def mxfp4(parts: BlockArrays) -> Slices:
    """Unpack floats of four bits, with a power of two for each 32."""
    exponent, packed = parts
    factor = look_up(HALF_E8M0, exponent)[..., None]
    return tuple(factor * look_up(E2M1, codes) for codes in halves(packed))


def nvfp4(parts: BlockArrays) -> Slices:
    """Unpack floats of four bits, with a float of eight bits for each sixteen."""
    scales, packed = parts  # [..., 4], [..., 4, 8]
    factor: Any = flat(look_up(HALF_E4M3, scales), 1, 4, 1)
    return tuple(factor * look_up(E2M1, codes) for codes in halves(packed))
