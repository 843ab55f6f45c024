"""Products of whole numbers on grids are those of the formula that the releases were trained with."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.packed import tiles
from langchain_gemma_jax.models.packed.channel_matrix import ChannelMatrix
from langchain_gemma_jax.models.seams.weights import PLAIN


def stored(whole: np.ndarray, bits: int) -> np.ndarray:
    """Whole numbers as bytes: the first one in the lowest bits, zero in the middle."""
    if bits == 8:
        return whole.astype(np.int8)
    cells = (whole + (1 << (bits - 1))).reshape(*whole.shape[:-1], -1, 8 // bits)
    return (cells << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)


def on_grid(x: np.ndarray, size: float) -> np.ndarray:
    """Static rounding, as it was published: half to even, 256 steps; a size of 0 means none."""
    return x if size == 0 else np.clip(np.round(x / np.float32(size)), -128, 127) * np.float32(size)


def made(bits: int, shape: tuple[int, int], seed: int, groups: int = 1, grids=(0.0, 0.0), **options):
    """A matrix, and the dense one that it stands for."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), shape)
    scales = rng.uniform(0.01, 0.03, (shape[0], groups)).astype(np.float32)
    dense = whole.astype(np.float32) * np.repeat(scales, shape[1] // groups, axis=1)
    parts = (stored(whole, bits), scales, *(np.float32(size) for size in grids))
    return ChannelMatrix(*map(jnp.asarray, parts), bits, options.pop("dtype", "float32"), **options), dense


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_products_are_the_formulas_in_every_form(bits, monkeypatch):
    monkeypatch.setattr(tiles, "FEW_TILE", 7 << 8)  # tiles of 7 rows
    monkeypatch.setattr(tiles, "MORE_TILE", 11 << 8)
    product = jax.jit(ChannelMatrix.product, static_argnums=2)
    for tiled, shapes in ((True, ((1, 1), (1, 3), (10,))), (False, ((1, 3),))):
        for seed, grids in enumerate([(0.0, 0.0), (0.031, 0.0), (0.031, 0.27), (0.0, 0.27), (0.005, 0.01)]):
            matrix, dense = made(bits, (20, 64), seed, grids=grids, tiled=tiled)
            for shape in shapes:
                x = np.random.default_rng(seed).standard_normal((*shape, 64)).astype(np.float32)
                exact = on_grid(x, grids[0]).astype(np.float64) @ dense.T.astype(np.float64)
                found = np.asarray(product(matrix, x, PLAIN))
                # A number in the middle between two steps may go to either.
                near = np.abs(np.abs(exact / (grids[1] or 1) % 1) - 0.5) < 1e-4 if grids[1] else np.zeros(1, bool)
                wanted = on_grid(exact.astype(np.float32), grids[1])
                np.testing.assert_allclose(np.where(near, 0, found), np.where(near, 0, wanted), rtol=1e-5, atol=1e-5)


def test_rounding_is_half_to_even_and_ends_with_the_grid():
    matrix, _ = made(8, (1, 4), 0, grids=(1.0, 0.0))
    matrix = ChannelMatrix(
        jnp.asarray([[1, 0, 0, 0]], jnp.int8), jnp.ones((1, 1)), matrix.grid_in, matrix.grid_out, 8, "float32"
    )
    x = np.zeros((8, 4), np.float32)
    x[:, 0] = (0.5, 1.5, 2.5, -0.5, -1.5, 126.6, 1e9, -1e9)
    found = matrix.product(jnp.asarray(x), PLAIN)[:, 0]
    assert found.tolist() == [0, 2, 2, 0, -2, 127, 127, -128]


def test_products_of_whole_numbers_are_exact_in_bfloat16():
    matrix, dense = made(4, (20, 64), 0, grids=(0.031, 0.0), dtype="bfloat16")
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    np.testing.assert_allclose(matrix.product(jnp.asarray(x), PLAIN), on_grid(x, 0.031) @ dense.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("bits", "groups"), [(2, 1), (2, 4), (4, 8), (8, 1)])
def test_rows_are_the_dense_ones(bits, groups):
    matrix, dense = made(bits, (20, 64), 1, groups)
    ids = np.array([[0, 19, 3], [3, 3, 7]])
    np.testing.assert_array_equal(jax.jit(ChannelMatrix.rows)(matrix, ids), dense[ids])
    stack = jax.tree.map(lambda part: jnp.stack([part, part]), matrix)
    np.testing.assert_array_equal(stack.matrix_at(jnp.int32(1)).rows(jnp.asarray(ids)), dense[ids])
    assert matrix.nbytes == 20 * 64 * bits // 8 + 20 * groups * 4 + 8
