"""Products with matrices in blocks are those with the dense matrices that they stand for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, numbers
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.splitting import apart
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.weights import PLAIN
from tests.models.gguf.make import random_blocks


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
