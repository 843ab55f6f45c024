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
from typing import Any, TypeAlias

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt

BlockArrays: TypeAlias = "tuple[Any, ...]"
"""The arrays of some blocks, numpy's or JAX's: each ``[..., block, *shape of the part]``."""

Slices: TypeAlias = "tuple[Any, ...]"
"""The numbers of some blocks: float32 ``[..., block, *any, lane]`` each. Slices stacked along the axis before the last
have a block's numbers in order: for each index of ``any`` the lanes of slice 0, then those of slice 1, and so on. The
numbers of one slice are unpacked by the same operations, and a product can be taken slice by slice."""


@dataclass(frozen=True)
class Field:
    """The part of a block in one of the arrays that a matrix is stored in."""

    dtype: str
    shape: tuple[int, ...] = ()
    at: int | None = 0  # its first byte in a file's block; None: the file interleaves it with another field


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


def numbers(kind: BlockFormat, parts: BlockArrays) -> Any:
    """Return the numbers of whole rows: float32 ``[..., in]``, as an array of numpy or JAX like the parts."""
    lead = parts[0].shape[: parts[0].ndim - len(kind.parts[0].shape)]
    slices = kind.unpack(parts)
    joined = slices[0]
    if len(slices) > 1:
        arrays = np if isinstance(joined, np.ndarray) else jnp
        joined = arrays.stack(slices, axis=-2)
    return joined.reshape(*lead[:-1], lead[-1] * kind.elements)


def _f32(x: Any) -> Any:
    return x.astype("float32")


def _of_rank(constant: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
    """Return a constant with ``rank`` axes."""
    return constant.reshape((1,) * (rank - constant.ndim) + constant.shape)


_BITS_OF_16 = np.arange(16, dtype=np.uint32)


def _halves(packed: Any) -> tuple[Any, Any]:
    """Return the four-bit numbers in bytes: those in the lower halves, then those in the upper ones."""
    return packed & 15, packed >> 4


def _with_fifth(packed: Any, high: Any) -> Iterator[Any]:
    """Yield five-bit numbers, whose fifth bits are in one number per block."""
    for index, low in enumerate(_halves(packed)):
        fifth = (high[..., None] >> _of_rank(_BITS_OF_16 + np.uint32(16 * index), high.ndim + 1)) & 1
        yield low | (fifth << 4).astype("uint8")


def _signed(unsigned: Any, middle: int) -> Any:
    return _f32(unsigned.astype("int8") - np.int8(middle))


def _q4_0(parts: BlockArrays) -> Slices:
    scale, packed = parts
    return tuple(_f32(scale)[..., None] * _signed(values, 8) for values in _halves(packed))


def _q4_1(parts: BlockArrays) -> Slices:
    scale, least, packed = parts
    return tuple(_f32(scale)[..., None] * _f32(values) + _f32(least)[..., None] for values in _halves(packed))


def _q5_0(parts: BlockArrays) -> Slices:
    scale, high, packed = parts
    return tuple(_f32(scale)[..., None] * _signed(values, 16) for values in _with_fifth(packed, high))


def _q5_1(parts: BlockArrays) -> Slices:
    scale, least, high, packed = parts
    halves = _with_fifth(packed, high)
    return tuple(_f32(scale)[..., None] * _f32(each) + _f32(least)[..., None] for each in halves)


def _q8_0(parts: BlockArrays) -> Slices:
    scale, values = parts
    return (_f32(values) * _f32(scale)[..., None],)


def _groups(one: Any, each: Any) -> list[Any]:
    """Return a block's factor times those of its groups: even groups ``[..., 4, 1]``, then odd ones."""
    factors = _f32(one)[..., None] * _f32(each)
    factors = factors.reshape(*factors.shape[:-1], 4, 2, 1)
    return [factors[..., 0, :], factors[..., 1, :]]


def _q4_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, packed = parts
    factors = zip(_halves(packed), _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * _f32(values) - less for values, factor, less in factors)


def _q5_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, high, packed = parts
    values = [
        low | (((high[..., None, :] & _of_rank(_OF_FOUR[index], high.ndim + 1)) != 0).astype("uint8") << 4)
        for index, low in enumerate(_halves(packed))
    ]
    factors = zip(values, _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * _f32(values) - less for values, factor, less in factors)


_OF_FOUR = [(1 << np.arange(first, 8, 2, dtype=np.uint8)).astype(np.uint8).reshape(4, 1) for first in (0, 1)]


def _q6_k(parts: BlockArrays) -> Slices:
    scale, scales, high, packed = parts
    factors = _f32(scale)[..., None] * _f32(scales)
    factors = factors.reshape(*factors.shape[:-1], 2, 4, 2, 1)  # [..., half of a block, quarter of it, half of that, 1]
    quarters = []
    for quarter in range(4):
        low = _halves(packed[..., quarter % 2, :])[quarter // 2]
        number = _signed(low | (((high >> (2 * quarter)) & 3) << 4), 32)
        number = number.reshape(*number.shape[:-1], 2, 16) * factors[..., quarter, :, :]
        quarters.append(number.reshape(*number.shape[:-2], 32))
    return tuple(quarters)


def _plain(name: str, dtype: str) -> BlockFormat:
    size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    return BlockFormat(name, 1, size, (Field(dtype),), lambda parts: (_f32(parts[0]),))


def _f16(at: int) -> Field:
    return Field("float16", (), at)


def _u8(at: int | None, *shape: int) -> Field:
    return Field("uint8", shape, at)


_SIX_BITS = (_u8(None, 8), _u8(None, 8))  # scales and leasts, eight of each in twelve bytes

BLOCK_FORMATS: Mapping[str, BlockFormat] = {
    kind.name: kind
    for kind in (
        _plain("F32", "float32"),
        _plain("F16", "float16"),
        _plain("BF16", "bfloat16"),
        BlockFormat("Q8_0", 32, 34, (_f16(0), Field("int8", (32,), 2)), _q8_0, 1, 32),
        BlockFormat("Q4_0", 32, 18, (_f16(0), _u8(2, 16)), _q4_0, 2, 16),
        BlockFormat("INT4", 32, 18, (Field("bfloat16"), _u8(2, 16)), _q4_0, 2, 16),
        BlockFormat("Q4_1", 32, 20, (_f16(0), _f16(2), _u8(4, 16)), _q4_1, 2, 16),
        BlockFormat("Q5_0", 32, 22, (_f16(0), Field("uint32", (), 2), _u8(6, 16)), _q5_0, 2, 16),
        BlockFormat("Q5_1", 32, 24, (_f16(0), _f16(2), Field("uint32", (), 4), _u8(8, 16)), _q5_1, 2, 16),
        BlockFormat("Q4_K", 256, 144, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 4, 32)), _q4_k, 2, 32),
        BlockFormat("Q5_K", 256, 176, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 32), _u8(48, 4, 32)), _q5_k, 2, 32),
        BlockFormat(
            "Q6_K", 256, 210, (_f16(208), Field("int8", (16,), 192), _u8(128, 2, 32), _u8(0, 2, 2, 32)), _q6_k, 4, 32
        ),
    )
}
"""Every block format that is read here, by its name in GGUF files. INT4 is Q4_0 with the bfloat16 scales of folders."""

IN_GGUF = tuple(name for name in BLOCK_FORMATS if name != "INT4")
"""Block formats of GGUF files."""
