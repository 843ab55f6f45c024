"""Block formats: how some numbers lie in a few bytes, and how the numbers are made of the bytes again.

A matrix in a block format has a whole number of blocks in each row. Its blocks are kept in parts, each of them one
array: a block's scales lie beside its neighbours' scales and not in front of its own numbers, so that a processor
reads both in long runs. The parts together have the bytes of the blocks; where a format interleaves numbers of six
bits, these are kept as bytes, which is 3 % more.

``unpack`` is the one definition of each format. It is written with operators only and so does the same for numpy's
arrays, by which it is compared with the reference to the last bit, and inside a compiled program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
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


@dataclass(frozen=True, eq=False)
class Kind:
    """A block format."""

    name: str  # as GGUF files spell it
    elements: int  # of a block
    nbytes: int  # of a block in a file
    parts: tuple[Field, ...]
    split: Callable[[Bytes], BlockArrays]  # blocks as in a file, [..., block, nbytes] → parts
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


def _take(raw: Bytes, start: int, dtype: str, *shape: int) -> Any:
    """One part of each block, from the byte ``start`` of the block on."""
    wanted = np.dtype(getattr(ml_dtypes, dtype, dtype))
    count = math.prod(shape) * wanted.itemsize
    found = np.ascontiguousarray(raw[..., start : start + count]).view(wanted)
    return found.reshape(*raw.shape[:-1], *shape)


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


def _six_bits(raw: Bytes) -> tuple[Any, Any]:
    """Return eight scales and eight leasts a block, which lie in twelve bytes: the last four hold what others lack."""
    first, second, rest = raw[..., 4:8], raw[..., 8:12], raw[..., 12:16]
    scales = np.concatenate([first & 63, (rest & 15) | ((first >> 2) & 48)], axis=-1)
    leasts = np.concatenate([second & 63, (rest >> 4) | ((second >> 2) & 48)], axis=-1)
    return scales, leasts


def _plain(name: str, dtype: str) -> Kind:
    size = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    return Kind(name, 1, size, (Field(dtype),), lambda raw: (_take(raw, 0, dtype),), lambda parts: (_f32(parts[0]),))


_F16, _U8, _U32 = Field("float16"), "uint8", Field("uint32")

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        _plain("F32", "float32"),
        _plain("F16", "float16"),
        _plain("BF16", "bfloat16"),
        Kind(
            "Q8_0", 32, 34, (_F16, Field("int8", (32,))),
            lambda raw: (_take(raw, 0, "float16"), _take(raw, 2, "int8", 32)), _q8_0, 1, 32,
        ),
        Kind(
            "Q4_0", 32, 18, (_F16, Field(_U8, (16,))),
            lambda raw: (_take(raw, 0, "float16"), _take(raw, 2, _U8, 16)), _q4_0, 2, 16,
        ),
        Kind(
            "INT4", 32, 18, (Field("bfloat16"), Field(_U8, (16,))),
            lambda raw: (_take(raw, 0, "bfloat16"), _take(raw, 2, _U8, 16)), _q4_0, 2, 16,
        ),
        Kind(
            "Q4_1", 32, 20, (_F16, _F16, Field(_U8, (16,))),
            lambda raw: (_take(raw, 0, "float16"), _take(raw, 2, "float16"), _take(raw, 4, _U8, 16)), _q4_1, 2, 16,
        ),
        Kind(
            "Q5_0", 32, 22, (_F16, _U32, Field(_U8, (16,))),
            lambda raw: (_take(raw, 0, "float16"), _take(raw, 2, "uint32"), _take(raw, 6, _U8, 16)), _q5_0, 2, 16,
        ),
        Kind(
            "Q5_1", 32, 24, (_F16, _F16, _U32, Field(_U8, (16,))),
            lambda raw: (
                _take(raw, 0, "float16"), _take(raw, 2, "float16"), _take(raw, 4, "uint32"), _take(raw, 8, _U8, 16)
            ), _q5_1, 2, 16,
        ),
        Kind(
            "Q4_K", 256, 144, (_F16, _F16, Field(_U8, (8,)), Field(_U8, (8,)), Field(_U8, (4, 32))),
            lambda raw: (
                _take(raw, 0, "float16"), _take(raw, 2, "float16"), *_six_bits(raw), _take(raw, 16, _U8, 4, 32)
            ), _q4_k, 2, 32,
        ),
        Kind(
            "Q5_K", 256, 176,
            (_F16, _F16, Field(_U8, (8,)), Field(_U8, (8,)), Field(_U8, (32,)), Field(_U8, (4, 32))),
            lambda raw: (
                _take(raw, 0, "float16"), _take(raw, 2, "float16"), *_six_bits(raw),
                _take(raw, 16, _U8, 32), _take(raw, 48, _U8, 4, 32),
            ), _q5_k, 2, 32,
        ),
        Kind(
            "Q6_K", 256, 210, (_F16, Field("int8", (16,)), Field(_U8, (2, 32)), Field(_U8, (2, 2, 32))),
            lambda raw: (
                _take(raw, 208, "float16"), _take(raw, 192, "int8", 16),
                _take(raw, 128, _U8, 2, 32), _take(raw, 0, _U8, 2, 2, 32),
            ), _q6_k, 4, 32,
        ),
    )
}  # fmt: skip
"""Every block format that is read here, by its name in GGUF files; INT4 is Q4_0 with the scales of safetensors."""
