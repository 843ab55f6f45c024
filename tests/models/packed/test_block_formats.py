"""Each block format means the numbers that its authors' package says, to the last bit; so do products with it."""

from __future__ import annotations

import gguf
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.splitting import apart, split
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.weights import PLAIN
from tests.models.gguf.make import random_blocks


def any_blocks(kind, rng, rows=6):
    """Any bytes at all: scales that are infinite, not a number, or too small for anything else included."""
    blocks = 3 if kind.elements > 1 else 70
    return rng.integers(0, 256, (rows, blocks, kind.nbytes), dtype=np.uint8)


def reference(kind, raw):
    flat = raw.reshape(len(raw), -1)
    if kind.name in {"F32", "F16"}:
        return flat.view(np.float32 if kind.name == "F32" else np.float16).astype(np.float32)
    if kind.name == "INT4":  # Q4_0, but for the scale's dtype
        scales = raw[..., :2].copy().view(ml_dtypes.bfloat16).astype(np.float32)
        ones = np.concatenate([np.broadcast_to(np.array([0, 0x3C], np.uint8), raw[..., :2].shape), raw[..., 2:]], -1)
        found = gguf.dequantize(ones.reshape(len(raw), -1), gguf.GGMLQuantizationType.Q4_0)
        return (scales * found.reshape(*raw.shape[:-1], 32)).reshape(len(raw), -1)
    return gguf.dequantize(flat, gguf.GGMLQuantizationType[kind.name])


@pytest.mark.parametrize("kind", BLOCK_FORMATS.values(), ids=lambda kind: kind.name)
def test_numbers_are_the_references_to_the_last_bit(kind):
    for seed in range(10):
        raw = any_blocks(kind, np.random.default_rng(seed))
        with np.errstate(all="ignore"):
            ours, theirs = numbers(kind, apart(kind, raw)), reference(kind, raw)
        np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))


@pytest.mark.parametrize("kind", BLOCK_FORMATS.values(), ids=lambda kind: kind.name)
def test_parts_have_the_bytes_of_the_blocks(kind):
    raw = any_blocks(kind, np.random.default_rng(0))
    parts = apart(kind, raw)
    rooms = [np.full((2, *part.shape), 7, part.dtype) for part in parts]
    split(kind, raw[1:], [room[1, 1:] for room in rooms])  # to a place among others, which stay as they are
    for room, part in zip(rooms, parts, strict=True):
        np.testing.assert_array_equal(room[1, 1:].view(np.uint8), part[1:].view(np.uint8))
        assert (room[0] == 7).all()
        assert (room[1, 0] == 7).all()
    assert [(part.dtype, part.shape[2:]) for part in parts] == [
        (numpy_dtype(part.dtype), part.shape) for part in kind.parts
    ]
    assert all(part.flags.c_contiguous for part in parts)
    blocks = parts[0].shape[0] * parts[0].shape[1]
    assert blocks * kind.nbytes <= sum(part.nbytes for part in parts) <= 1.03 * blocks * kind.nbytes


def made(kind, shape, seed):
    """A matrix of ordinary numbers, and the dense one that it is."""
    raw = np.ascontiguousarray(random_blocks(kind.name, shape, np.random.default_rng(seed))).view(np.uint8)
    raw = raw.reshape(*shape[:-1], -1, kind.nbytes)
    parts = apart(kind, raw)
    return tuple(map(jnp.asarray, parts)), numbers(kind, parts)


@pytest.mark.long
@pytest.mark.parametrize("kind", BLOCK_FORMATS.values(), ids=lambda kind: kind.name)
def test_products_and_rows_are_those_of_the_dense_matrix(kind, monkeypatch):
    monkeypatch.setattr("langchain_gemma_jax.models.packed.tiles.FEW_TILE", 7 << 10)  # tiles of 7 rows
    monkeypatch.setattr("langchain_gemma_jax.models.packed.tiles.MORE_TILE", 11 << 10)
    parts, dense = made(kind, (20, 256), 0)
    ids = jnp.asarray([[0, 19, 3], [3, 3, 7]])
    rows = jax.jit(BlockMatrix.rows)(BlockMatrix(parts, kind.name, "float32"), ids)
    np.testing.assert_allclose(rows, dense[np.asarray(ids)], rtol=1e-6, atol=1e-7)
    for form in BlockForm:
        matrix = BlockMatrix(parts, kind.name, "float32", BlockForms(form, form, form))
        for shape in ((1, 1), (1, 3), (10,)) if form is BlockForm.TILES else ((1, 3),):
            x = np.random.default_rng(1).standard_normal((*shape, 256)).astype(np.float32)
            found = jax.jit(BlockMatrix.product, static_argnums=2)(matrix, x, PLAIN)
            np.testing.assert_allclose(found, x @ dense.T, rtol=1e-5, atol=2e-5)


def test_a_stack_and_a_matrix_of_two_formats():
    (first, one), (second, two) = (
        made(BLOCK_FORMATS["Q4_K"], (3, 8, 256), 0),
        made(BLOCK_FORMATS["Q6_K"], (3, 4, 256), 1),
    )
    matrix = Stacked((BlockMatrix(first, "Q4_K", "float32"), BlockMatrix(second, "Q6_K", "float32")), (8, 4))
    dense = np.concatenate([one, two], axis=1)
    x = np.random.default_rng(2).standard_normal((2, 256)).astype(np.float32)

    @jax.jit
    def both(index):
        each = matrix.matrix_at(index)
        return each.product(jnp.asarray(x), PLAIN), each.rows(jnp.arange(12))

    for index in range(3):
        products, rows = both(index)
        np.testing.assert_allclose(products, x @ dense[index].T, rtol=1e-5, atol=2e-5)
        np.testing.assert_allclose(rows, dense[index], rtol=1e-6, atol=1e-7)
    assert matrix.nbytes == sum(part.nbytes for part in (*first, *second))
