"""Block formats: the layout of a block's numbers in bytes, and the function that unpacks them.

A matrix in a block format has a whole number of blocks in each row. Its blocks are stored in parts, each one array: the
scales of all blocks are in one array, and not each in front of its block's numbers, so that a processor reads both in
long runs. The parts together have the bytes of the blocks. Where a format interleaves numbers of six bits, these are
stored as bytes, which takes 3 % more.

``unpack`` is the one definition of each format. It uses operators only, so it works on numpy's arrays, where it is
compared with the reference to the last bit, and inside a compiled program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.packed.code_tables import iq4_nl, iq4_xs, iq4_xs_scales, mxfp4, nvfp4
from langchain_gemma_jax.models.packed.few_bits import q1_0, q2_k, q3_k, q3_k_scales, tq1_0, tq2_0
from langchain_gemma_jax.models.packed.grid_blocks import (
    iq1_m,
    iq1_m_scale,
    iq1_s,
    iq2_s,
    iq2_xs,
    iq2_xs_parts,
    iq2_xxs,
    iq2_xxs_parts,
    iq3_s,
    iq3_xxs,
    iq3_xxs_sevens,
)
from langchain_gemma_jax.models.packed.unpacking import BlockArrays, Bytes, Slices, f32, halves, of_rank, signed


@dataclass(frozen=True)
class Field:
    """The part of a block in one of the arrays that a matrix is stored in."""

    dtype: str
    shape: tuple[int, ...] = ()
    at: int | None = 0  # its first byte in a file's block; None: the file interleaves its bits with others


@dataclass(frozen=True, eq=False)
class BlockFormat:
    """A block format."""

    name: str  # as GGUF files spell it
    elements: int  # of a block
    nbytes: int  # of a block in a file
    parts: tuple[Field, ...]
    unpack: Callable[[BlockArrays], Slices]
    slices: int = 1  # number of slices that ``unpack`` returns
    lane: int = 1  # size of the last axis of a slice
    take_apart: Callable[..., None] | None = None
    """Fills the arrays of fields without a first byte, ``[block, *shape of the part]``, from ``[block, byte]``."""


def numbers(kind: BlockFormat, parts: BlockArrays) -> Any:
    """Return the numbers of whole rows: float32 ``[..., in]``, as an array of numpy or JAX like the parts."""
    lead = parts[0].shape[: parts[0].ndim - len(kind.parts[0].shape)]
    slices = kind.unpack(parts)
    joined = slices[0]
    if len(slices) > 1:
        arrays = np if isinstance(joined, np.ndarray) else jnp
        joined = arrays.stack(slices, axis=-2)
    return joined.reshape(*lead[:-1], lead[-1] * kind.elements)


_BITS_OF_16 = np.arange(16, dtype=np.uint32)


def _with_fifth(packed: Any, high: Any) -> Iterator[Any]:
    """Yield five-bit numbers, whose fifth bits are in one number per block."""
    for index, low in enumerate(halves(packed)):
        fifth = (high[..., None] >> of_rank(_BITS_OF_16 + np.uint32(16 * index), high.ndim + 1)) & 1
        yield low | (fifth << 4).astype("uint8")


def _q4_0(parts: BlockArrays) -> Slices:
    scale, packed = parts
    return tuple(f32(scale)[..., None] * signed(values, 8) for values in halves(packed))


def _q4_1(parts: BlockArrays) -> Slices:
    scale, least, packed = parts
    return tuple(f32(scale)[..., None] * f32(values) + f32(least)[..., None] for values in halves(packed))


def _q5_0(parts: BlockArrays) -> Slices:
    scale, high, packed = parts
    return tuple(f32(scale)[..., None] * signed(values, 16) for values in _with_fifth(packed, high))


def _q5_1(parts: BlockArrays) -> Slices:
    scale, least, high, packed = parts
    halves = _with_fifth(packed, high)
    return tuple(f32(scale)[..., None] * f32(each) + f32(least)[..., None] for each in halves)


def _q8_0(parts: BlockArrays) -> Slices:
    scale, values = parts
    return (f32(values) * f32(scale)[..., None],)


def _groups(one: Any, each: Any) -> list[Any]:
    """Return a block's factor times those of its groups: even groups ``[..., 4, 1]``, then odd ones."""
    factors = f32(one)[..., None] * f32(each)
    factors = factors.reshape(*factors.shape[:-1], 4, 2, 1)
    return [factors[..., 0, :], factors[..., 1, :]]


def _q4_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, packed = parts
    factors = zip(halves(packed), _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * f32(values) - less for values, factor, less in factors)


def _q5_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, high, packed = parts
    values = [
        low | (((high[..., None, :] & of_rank(_OF_FOUR[index], high.ndim + 1)) != 0).astype("uint8") << 4)
        for index, low in enumerate(halves(packed))
    ]
    factors = zip(values, _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * f32(values) - less for values, factor, less in factors)


_OF_FOUR = [(1 << np.arange(first, 8, 2, dtype=np.uint8)).astype(np.uint8).reshape(4, 1) for first in (0, 1)]


def _q6_k(parts: BlockArrays) -> Slices:
    scale, scales, high, packed = parts
    factors = f32(scale)[..., None] * f32(scales)
    factors = factors.reshape(*factors.shape[:-1], 2, 4, 2, 1)  # [..., half of a block, quarter of it, half of that, 1]
    quarters = []
    for quarter in range(4):
        low = halves(packed[..., quarter % 2, :])[quarter // 2]
        number = signed(low | (((high >> (2 * quarter)) & 3) << 4), 32)
        number = number.reshape(*number.shape[:-1], 2, 16) * factors[..., quarter, :, :]
        quarters.append(number.reshape(*number.shape[:-2], 32))
    return tuple(quarters)


def _plain(name: str, dtype: str) -> BlockFormat:
    size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    return BlockFormat(name, 1, size, (Field(dtype),), lambda parts: (f32(parts[0]),))


def _field(dtype: str) -> Callable[..., Field]:
    def of(at: int | None, *shape: int) -> Field:
        return Field(dtype, shape, at)

    return of


_f16, _i8, _u8, _u16, _u32 = map(_field, ("float16", "int8", "uint8", "uint16", "uint32"))


def _six_bits(blocks: Bytes, scales: npt.NDArray[np.uint8], leasts: npt.NDArray[np.uint8]) -> None:
    """Unpack scales and minima of six bits to bytes, four at a time: the last four bytes hold the missing bits."""
    first, second, rest = blocks[:, 4:16].copy().view("<u4").T
    scale, least = scales.view("<u4"), leasts.view("<u4")
    scale[:, 0], least[:, 0] = first & 0x3F3F3F3F, second & 0x3F3F3F3F
    scale[:, 1] = (rest & 0x0F0F0F0F) | ((first >> 2) & 0x30303030)
    least[:, 1] = ((rest >> 4) & 0x0F0F0F0F) | ((second >> 2) & 0x30303030)


_SIX_BITS = (_u8(None, 8), _u8(None, 8))  # scales and leasts, eight of each in twelve bytes

BLOCK_FORMATS: Mapping[str, BlockFormat] = {
    kind.name: kind
    for kind in (
        _plain("F32", "float32"),
        _plain("F16", "float16"),
        _plain("BF16", "bfloat16"),
        BlockFormat("Q8_0", 32, 34, (_f16(0), _i8(2, 32)), _q8_0, 1, 32),
        BlockFormat("Q4_0", 32, 18, (_f16(0), _u8(2, 16)), _q4_0, 2, 16),
        BlockFormat("INT4", 32, 18, (Field("bfloat16"), _u8(2, 16)), _q4_0, 2, 16),
        BlockFormat("Q4_1", 32, 20, (_f16(0), _f16(2), _u8(4, 16)), _q4_1, 2, 16),
        BlockFormat("Q5_0", 32, 22, (_f16(0), _u32(2), _u8(6, 16)), _q5_0, 2, 16),
        BlockFormat("Q5_1", 32, 24, (_f16(0), _f16(2), _u32(4), _u8(8, 16)), _q5_1, 2, 16),
        BlockFormat("Q4_K", 256, 144, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 4, 32)), _q4_k, 2, 32, _six_bits),
        BlockFormat(
            "Q5_K", 256, 176, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 32), _u8(48, 4, 32)), _q5_k, 2, 32, _six_bits
        ),
        BlockFormat("Q6_K", 256, 210, (_f16(208), _i8(192, 16), _u8(128, 2, 32), _u8(0, 2, 2, 32)), _q6_k, 4, 32),
        BlockFormat("Q2_K", 256, 84, (_f16(80), _f16(82), _u8(0, 16), _u8(16, 2, 32)), q2_k, 4, 32),
        BlockFormat("Q3_K", 256, 110, (_f16(108), _i8(None, 16), _u8(0, 32), _u8(32, 2, 32)), q3_k, 4, 32, q3_k_scales),
        BlockFormat("IQ4_NL", 32, 18, (_f16(0), _u8(2, 16)), iq4_nl, 2, 16),
        BlockFormat("IQ4_XS", 256, 136, (_f16(0), _i8(None, 8), _u8(8, 8, 16)), iq4_xs, 2, 16, iq4_xs_scales),
        BlockFormat("IQ3_S", 256, 110, (_f16(0), _u8(2, 64), _u8(66, 8), _u8(74, 32), _u8(106, 4)), iq3_s, 1, 8),
        BlockFormat("IQ3_XXS", 256, 98, (_f16(0), _u8(2, 64), _u8(None, 32)), iq3_xxs, 1, 8, iq3_xxs_sevens),
        BlockFormat("IQ2_S", 256, 82, (_f16(0), _u8(2, 32), _u8(34, 32), _u8(66, 8), _u8(74, 8)), iq2_s, 1, 8),
        BlockFormat("IQ2_XS", 256, 74, (_f16(0), _u8(None, 32), _u8(None, 32), _u8(66, 8)), iq2_xs, 1, 8, iq2_xs_parts),
        BlockFormat("IQ2_XXS", 256, 66, (_f16(0), _u8(None, 32), _u8(None, 32)), iq2_xxs, 1, 8, iq2_xxs_parts),
        BlockFormat("IQ1_M", 256, 56, (_f16(None), _u8(0, 32), _u8(32, 16), _u16(48, 4)), iq1_m, 1, 8, iq1_m_scale),
        BlockFormat("IQ1_S", 256, 50, (_f16(0), _u8(2, 32), _u16(34, 8)), iq1_s, 1, 8),
        BlockFormat("TQ1_0", 256, 54, (_f16(52), _u8(0, 48), _u8(48, 4)), tq1_0, 1, 16),
        BlockFormat("TQ2_0", 256, 66, (_f16(64), _u8(0, 2, 32)), tq2_0, 4, 32),
        BlockFormat("MXFP4", 32, 17, (_u8(0), _u8(1, 16)), mxfp4, 2, 16),
        BlockFormat("NVFP4", 64, 36, (_u8(0, 4), _u8(4, 4, 8)), nvfp4, 2, 8),
        BlockFormat("Q1_0", 128, 18, (_f16(0), _u8(2, 16)), q1_0, 1, 8),
    )
}
"""Every block format that is read here, by its name in GGUF files. INT4 is Q4_0 with the bfloat16 scales of folders."""

IN_GGUF = tuple(name for name in BLOCK_FORMATS if name != "INT4")
"""Block formats of GGUF files."""
