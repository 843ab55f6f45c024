"""Matrices of every kind with made-up blocks, their numbers, and the library's own door for products without XLA."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from langchain_gemma_jax.config import KERNEL_VARIANTS
from langchain_gemma_jax.kernels.build import LIBRARY
from langchain_gemma_jax.kernels.library import FOLDER
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.splitting import apart


def matrix(kind: str, outputs: int, inputs: int, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The arrays of a matrix whose blocks hold every code, with scales of the size that models have."""
    known = BLOCK_FORMATS[kind]
    raw = random.integers(0, 256, (outputs, inputs // known.elements, known.nbytes), np.uint8)
    if kind == "MXFP4":  # an exponent of two in a byte
        raw[..., 0] = random.integers(118, 125, raw.shape[:-1], np.uint8)
    parts = []
    for part in apart(known, raw):
        if part.dtype.kind == "f" or part.dtype == ml_dtypes.bfloat16:
            part = (random.standard_normal(part.shape) * 0.02).astype(part.dtype)  # noqa: PLW2901
        parts.append(np.ascontiguousarray(part))
    return tuple(parts)


def dense(kind: str, parts: Sequence[np.ndarray]) -> np.ndarray:
    """The numbers of a matrix, as the one definition of its format has them."""
    return np.asarray(numbers(BLOCK_FORMATS[kind], tuple(parts)), np.float64)


def library(path: str = str(FOLDER / LIBRARY)) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def variants(loaded: ctypes.CDLL) -> list[str]:
    """The variants that this processor runs."""
    return [name for name in KERNEL_VARIANTS if loaded.gemma_jax_runs(name.encode()) == 0]


def product(
    loaded: ctypes.CDLL,
    variant: str,
    kind: str,
    parts: Sequence[np.ndarray],
    x: np.ndarray,
    outputs: int,
    some: tuple[int, int] | None = None,
    *,
    off: int = 0,
    rounded: bool = False,
) -> np.ndarray:
    """``x`` times the matrix, by one variant; of ``some`` outputs alone; with its arrays ``off`` bytes aside."""
    keep = [np.frombuffer(bytes(off) + part.tobytes(), np.uint8) for part in (*parts, x)]
    *addresses, rows = (array.ctypes.data + off for array in keep)
    out = np.full((len(x), outputs), np.nan, np.float32)
    first, last = some or (0, outputs)
    status = loaded.gemma_jax_product(
        variant.encode(), kind.encode(), (ctypes.c_void_p * len(parts))(*addresses), ctypes.c_int64(outputs),
        ctypes.c_int64(x.shape[1]), ctypes.c_void_p(rows), ctypes.c_int64(len(x)), ctypes.c_void_p(out.ctypes.data),
        ctypes.c_int64(first), ctypes.c_int64(last), ctypes.c_int(rounded),
    )  # fmt: skip
    assert status == 0, (variant, kind)
    return out
