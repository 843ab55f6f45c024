"""Packing of dense matrices while they are loaded: in groups of 32 numbers with one scale, symmetric around zero.

``int8`` takes 8.5 bits a number, ``int4`` 4.5. The layouts are those of ``Q8_0`` and ``Q4_0``, so the products are the
same as for files in these formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.packed.from_file import specs_of
from langchain_gemma_jax.models.seams.block_forms import BlockForms
from langchain_gemma_jax.models.seams.weights import Storage

GROUP = 32
WEIGHTS = ("int8", "int4")
THREADS = 2  # that pack one matrix; the next one is read when it is done
_PIECE_BYTES = 4 << 20  # of float32, quantized at a time
_SHARES = np.array([0.92, 0.85, 0.78], np.float32)
"""Shares of a group's largest number to try as the range of four bits: clipping a little can make the error smaller."""

# Rows are looked up in these tables, and all tokens are scored by them: an error there affects every text.
_TABLES = frozenset({"embed", "head", "ple_embed"})


@dataclass(frozen=True)
class Quantized(Storage):
    """Storage of matrices in groups; token tables always in eight bits. Rows that are no whole groups stay dense."""

    bits: int  # 8 or 4
    forms: BlockForms

    @property
    def block_forms(self) -> BlockForms:
        return self.forms

    def with_block_forms(self, forms: BlockForms) -> Quantized:
        return replace(self, forms=forms)

    @property
    def rounds_by_kernel(self) -> bool:
        return self.forms.rounds_by_kernel

    def abstract(self, path: Path, dense: ArraySpec) -> Any:
        if dense.shape[-1] % GROUP:
            return dense
        return specs_of(self._kind(path), dense.shape[-2], dense, self.forms)

    def pack(self, path: Path, dense: ArraySpec, array: npt.NDArray[np.generic]) -> BlockMatrix:
        logical = array.swapaxes(-1, -2) if dense.transposed else array
        kind = self._kind(path)
        shape = (*logical.shape[:-1], logical.shape[-1] // GROUP)
        scales = np.empty(shape, np.float16)
        values = np.empty((*shape, *BLOCK_FORMATS[kind].parts[-1].shape), BLOCK_FORMATS[kind].parts[-1].dtype)
        quantize = _eight_bits if kind == "Q8_0" else _four_bits

        def pack_piece(piece: npt.NDArray[Any], scale: npt.NDArray[Any], value: npt.NDArray[Any]) -> None:
            groups = piece.astype(np.float32).reshape(*piece.shape[:-1], -1, GROUP)
            scale[...], value[...] = quantize(groups)

        with ThreadPoolExecutor(THREADS, "pack") as threads:
            list(threads.map(lambda piece: pack_piece(*piece), _pieces(logical, scales, values)))
        return BlockMatrix((scales, values), kind, dense.dtype, self.forms)

    def _kind(self, path: Path) -> str:
        return "Q8_0" if self.bits == 8 or path[0] in _TABLES else "Q4_0"


def quantized(weights: str, forms: BlockForms) -> Quantized:
    """Return the storage for the option ``weights``.

    Raises:
        InputError: it is not one of ``WEIGHTS``.
    """
    if weights not in WEIGHTS:
        raise InputError(f"weights: expected one of {', '.join(WEIGHTS)} or None, found {weights!r}.")
    return Quantized(int(weights.removeprefix("int")), forms)


def _pieces(*arrays: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield the same few rows of each of these arrays at a time; of stacks, one matrix after the other."""
    matrices = zip(*arrays, strict=True) if arrays[0].ndim > 2 else [arrays]
    for matrix in matrices:
        step = max(1, _PIECE_BYTES // (4 * matrix[0].shape[-1]))
        for start in range(0, len(matrix[0]), step):
            yield tuple(each[start : start + step] for each in matrix)


def _eight_bits(groups: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    scales = (np.abs(groups).max(-1) / np.float32(127)).astype(np.float16)
    return scales, np.clip(np.rint(groups * _inverse(scales)[..., None]), -127, 127).astype(np.int8)


def _four_bits(groups: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return scales and packed numbers. The number furthest from zero becomes -8, with the sign in the scale."""
    furthest = np.take_along_axis(groups, np.abs(groups).argmax(-1)[..., None], -1)[..., 0]
    scales = (furthest / np.float32(-8)).astype(np.float16)
    best, error = _rounded(groups, scales)
    for share in _SHARES:
        tried = (furthest * (share / np.float32(-8))).astype(np.float16)
        rounded, wrong = _rounded(groups, tried)
        better = wrong < error
        best, error = np.where(better[..., None], rounded, best), np.where(better, wrong, error)
        scales = np.where(better, tried, scales)
    packed = (best + 8).astype(np.uint8)
    half = GROUP // 2
    return scales, packed[..., :half] | packed[..., half:] << 4


def _rounded(groups: npt.NDArray[np.float32], scales: npt.NDArray[np.float16]) -> tuple[npt.NDArray[Any], Any]:
    """Return the numbers rounded to four bits, and the squared error of each group."""
    rounded = np.clip(np.rint(groups * _inverse(scales)[..., None]), -8, 7)
    return rounded, np.square(rounded * scales.astype(np.float32)[..., None] - groups).sum(-1)


def _inverse(scales: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    """Return 1 / scale; 0 where the scale is 0, as all numbers of such a group are 0."""
    wide = scales.astype(np.float32)
    return np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide != 0)
