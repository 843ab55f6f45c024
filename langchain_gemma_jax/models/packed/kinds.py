"""Block formats: how some numbers lie in a few bytes, and how the numbers are made of the bytes again.

A matrix in a block format has a whole number of blocks in each row. Its blocks are kept in parts, each of them one
array: a block's scales lie beside its neighbours' scales and not in front of its own numbers, so that a processor
reads both in long runs. The parts together have the bytes of the blocks; where a format interleaves numbers of six
bits, these are kept as bytes, which is 3 % more.

``unpack`` is the one definition of each format. It is written with operators only and so does the same for numpy's
arrays, by which it is compared with the reference to the last bit, and inside a compiled program.
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
"""The numbers of some blocks: float32 ``[..., block, *any, lane]`` each. The first lanes of all slices are a block's
first numbers, the second ones the next: stacked along the axis before the last they are in order. What a processor
does alike for neighbours lies in one slice, and a product with them can be taken slice by slice."""


@dataclass(frozen=True)
class Field:
    """One of the arrays that a matrix is kept in: what a block has of it."""

    dtype: str
    shape: tuple[int, ...] = ()
    at: int | None = 0  # the byte of a block in a file that it begins at; None: it lies there mixed with another one


@dataclass(frozen=True, eq=False)
class Kind:
    """A block format."""

    name: str  # as GGUF files spell it
    elements: int  # of a block
    nbytes: int  # of a block in a file
    parts: tuple[Field, ...]
    unpack: Callable[[BlockArrays], Slices]
    slices: int = 1  # that ``unpack`` gives
    lane: int = 1  # neighbours in a slice


def numbers(kind: Kind, parts: BlockArrays) -> Any:
    """The numbers of whole rows: float32 ``[..., in]``, of numpy's arrays or of JAX's."""
    lead = parts[0].shape[: parts[0].ndim - len(kind.parts[0].shape)]
    slices = kind.unpack(parts)
    found = slices[0]
    if len(slices) > 1:
        arrays = np if isinstance(found, np.ndarray) else jnp
        found = arrays.stack(slices, axis=-2)
    return found.reshape(*lead[:-1], lead[-1] * kind.elements)


def _f32(x: Any) -> Any:
    return x.astype("float32")


def _of_rank(constant: npt.NDArray[Any], rank: int) -> npt.NDArray[Any]:
    """Return a constant with as many axes as what it meets."""
    return constant.reshape((1,) * (rank - constant.ndim) + constant.shape)


_BITS_OF_16 = np.arange(16, dtype=np.uint32)


def _halves(packed: Any) -> tuple[Any, Any]:
    """Return the numbers of four bits in bytes: those in the lower halves, then those in the upper ones."""
    return packed & 15, packed >> 4


def _with_fifth(packed: Any, high: Any) -> Iterator[Any]:
    """Return numbers of five bits, of which the fifth ones lie in one number each block."""
    for index, low in enumerate(_halves(packed)):
        fifth = (high[..., None] >> _of_rank(_BITS_OF_16 + np.uint32(16 * index), high.ndim + 1)) & 1
        yield low | (fifth << 4).astype("uint8")


def _signed(found: Any, middle: int) -> Any:
    return _f32(found.astype("int8") - np.int8(middle))


def _q4_0(parts: BlockArrays) -> Slices:
    scale, packed = parts
    return tuple(_f32(scale)[..., None] * _signed(found, 8) for found in _halves(packed))


def _q4_1(parts: BlockArrays) -> Slices:
    scale, least, packed = parts
    return tuple(_f32(scale)[..., None] * _f32(found) + _f32(least)[..., None] for found in _halves(packed))


def _q5_0(parts: BlockArrays) -> Slices:
    scale, high, packed = parts
    return tuple(_f32(scale)[..., None] * _signed(found, 16) for found in _with_fifth(packed, high))


def _q5_1(parts: BlockArrays) -> Slices:
    scale, least, high, packed = parts
    found = _with_fifth(packed, high)
    return tuple(_f32(scale)[..., None] * _f32(each) + _f32(least)[..., None] for each in found)


def _q8_0(parts: BlockArrays) -> Slices:
    scale, values = parts
    return (_f32(values) * _f32(scale)[..., None],)


def _groups(one: Any, each: Any) -> list[Any]:
    """Return a block's factor times those of its groups: of four groups ``[..., 4, 1]``, then of the other four."""
    found = _f32(one)[..., None] * _f32(each)
    found = found.reshape(*found.shape[:-1], 4, 2, 1)
    return [found[..., 0, :], found[..., 1, :]]


def _q4_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, packed = parts
    factors = zip(_halves(packed), _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * _f32(found) - less for found, factor, less in factors)


def _q5_k(parts: BlockArrays) -> Slices:
    scale, least, scales, leasts, high, packed = parts
    found = [
        low | (((high[..., None, :] & _of_rank(_OF_FOUR[index], high.ndim + 1)) != 0).astype("uint8") << 4)
        for index, low in enumerate(_halves(packed))
    ]
    factors = zip(found, _groups(scale, scales), _groups(least, leasts), strict=True)
    return tuple(factor * _f32(found) - less for found, factor, less in factors)


_OF_FOUR = [(1 << np.arange(first, 8, 2, dtype=np.uint8)).astype(np.uint8).reshape(4, 1) for first in (0, 1)]


def _q6_k(parts: BlockArrays) -> Slices:
    scale, scales, high, packed = parts
    factors = _f32(scale)[..., None] * _f32(scales)
    factors = factors.reshape(*factors.shape[:-1], 2, 4, 2, 1)  # [..., half of a block, quarter of it, half of that, 1]
    found = []
    for quarter in range(4):
        low = _halves(packed[..., quarter % 2, :])[quarter // 2]
        number = _signed(low | (((high >> (2 * quarter)) & 3) << 4), 32)
        number = number.reshape(*number.shape[:-1], 2, 16) * factors[..., quarter, :, :]
        found.append(number.reshape(*number.shape[:-2], 32))
    return tuple(found)


def _plain(name: str, dtype: str) -> Kind:
    size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    return Kind(name, 1, size, (Field(dtype),), lambda parts: (_f32(parts[0]),))


def _f16(at: int) -> Field:
    return Field("float16", (), at)


def _u8(at: int | None, *shape: int) -> Field:
    return Field("uint8", shape, at)


_SIX_BITS = (_u8(None, 8), _u8(None, 8))  # scales and leasts, eight of each in twelve bytes

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _plain("F32", "float32"),
        _plain("F16", "float16"),
        _plain("BF16", "bfloat16"),
        Kind("Q8_0", 32, 34, (_f16(0), Field("int8", (32,), 2)), _q8_0, 1, 32),
        Kind("Q4_0", 32, 18, (_f16(0), _u8(2, 16)), _q4_0, 2, 16),
        Kind("INT4", 32, 18, (Field("bfloat16"), _u8(2, 16)), _q4_0, 2, 16),
        Kind("Q4_1", 32, 20, (_f16(0), _f16(2), _u8(4, 16)), _q4_1, 2, 16),
        Kind("Q5_0", 32, 22, (_f16(0), Field("uint32", (), 2), _u8(6, 16)), _q5_0, 2, 16),
        Kind("Q5_1", 32, 24, (_f16(0), _f16(2), Field("uint32", (), 4), _u8(8, 16)), _q5_1, 2, 16),
        Kind("Q4_K", 256, 144, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 4, 32)), _q4_k, 2, 32),
        Kind("Q5_K", 256, 176, (_f16(0), _f16(2), *_SIX_BITS, _u8(16, 32), _u8(48, 4, 32)), _q5_k, 2, 32),
        Kind("Q6_K", 256, 210, (_f16(208), Field("int8", (16,), 192), _u8(128, 2, 32), _u8(0, 2, 2, 32)), _q6_k, 4, 32),
    )
}
"""Every block format that is read here, by its name in GGUF files; INT4 is Q4_0 with the scales of safetensors."""

IN_GGUF = tuple(name for name in KINDS if name != "INT4")
"""Block formats that GGUF files have."""
