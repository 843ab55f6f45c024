"""Products in tiles need room for one tile, however many matrices a program multiplies by, and however small ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, numpy_dtype
from langchain_gemma_jax.models.packed.channel_matrix import ChannelMatrix
from langchain_gemma_jax.models.packed.from_file import specs_of
from langchain_gemma_jax.models.seams.block_forms import DEFAULT
from langchain_gemma_jax.models.seams.weights import PLAIN, map_specs

WIDTH, ROWS = 512, 64


def matrix_of(name):
    if name == "channels":
        numbers, scales = ArraySpec((WIDTH, WIDTH), "int8"), ArraySpec((WIDTH, 1), "float32")
        return ChannelMatrix(numbers, scales, ArraySpec((), "float32"), ArraySpec((), "float32"), 8, "float32")
    return specs_of(name, WIDTH, ArraySpec((WIDTH, WIDTH), "float32"), DEFAULT)


def like(spec):
    return jax.ShapeDtypeStruct(spec.shape, numpy_dtype(spec.dtype))


def room_of(name, count):
    """Bytes that a program of so many products one after another needs beside what goes in and comes out."""

    def program(matrices, x):
        for matrix in matrices:
            x = matrix.product(x, PLAIN)
        return x

    matrices = map_specs(like, [matrix_of(name)] * count)
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
    return jax.jit(program).lower(matrices, x).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="elsewhere products are not in tiles")
@pytest.mark.parametrize("name", ["Q8_0", "Q4_K", "channels"])
def test_no_two_matrices_are_dense_at_once(name):
    dense, few, many = 4 * WIDTH * WIDTH, room_of(name, 2), room_of(name, 8)
    assert few < 2 * dense
    assert many < few + dense // 4
