"""Activations in eight bits are the same numbers whoever computes with them, an option by name, and another model."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.packed import choose_forms
from langchain_gemma_jax.models.packed.activations import in_eight_bits
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.weights import PLAIN
from tests.kernels.made_up_matrices import library, product, variants

KERNEL = BlockForms(BlockForm.KERNEL, BlockForm.KERNEL)
needs_them = pytest.mark.skipif(not kernels().run, reason=f"there was no compiler: {kernels().why}")


def identity(count: int) -> tuple[np.ndarray, ...]:
    """A matrix that gives back what it is multiplied by."""
    codes = np.zeros((count, count // 32, 32), np.int8)
    codes.reshape(count, count)[np.arange(count), np.arange(count)] = 1
    return np.ones((count, count // 32), np.float16), codes


@needs_them
def test_kernels_and_xla_round_to_the_same_bits():
    random, loaded = np.random.default_rng(1), library()
    x = (random.standard_normal((4096, 64)) * 10.0 ** random.integers(-30, 30, (4096, 1))).astype(np.float32)
    x[0], x[1, :5], x[2, 3], x[3] = 0, -0.0, 3e38, np.float32(1e-40)
    x[4] = np.arange(64) / 2  # many of them in the middle between two steps
    ours = np.asarray(jax.jit(in_eight_bits)(x))
    assert (
        np.max(np.abs(ours - x).reshape(-1, 2, 32).max(-1) / np.abs(x).reshape(-1, 2, 32).max(-1).clip(1e-37)) < 0.004
    )
    for variant in variants(loaded):
        for first in range(0, 4096, 16):
            rows = x[first : first + 16]
            found = product(loaded, variant, "Q8_0", identity(64), rows, 64, rounded=True)
            np.testing.assert_array_equal(found, ours[first : first + 16], err_msg=f"{variant} {first}")


@needs_them
def test_what_is_no_number_stays_none():
    """The engine finds out by its scores that a model computes nonsense."""
    loaded, parts = library(), identity(64)
    for bad in (np.nan, np.inf, -np.inf):
        x = np.ones((3, 64), np.float32)
        x[1, 40] = bad
        assert np.isfinite(np.asarray(in_eight_bits(jnp.asarray(x)))[:, :32]).all()
        for found in (
            np.asarray(in_eight_bits(jnp.asarray(x))),
            *(product(loaded, variant, "Q8_0", parts, x, 64, rounded=True) for variant in variants(loaded)),
        ):
            assert not np.isfinite(found[1, 32:]).any()
            assert np.isfinite(found[[0, 2]]).all()


@needs_them
def test_a_long_chunk_gives_what_one_row_gives():
    random = np.random.default_rng(2)
    x = random.standard_normal((40, 256)).astype(np.float32)
    parts = (random.random((96, 8)).astype(np.float16), random.integers(-127, 128, (96, 8, 32)).astype(np.int8))
    matrix = BlockMatrix(
        tuple(map(jnp.asarray, parts)), "Q8_0", "float32", BlockForms(*[BlockForm.KERNEL] * 2, activations="int8")
    )
    run = jax.jit(lambda x: matrix.product(x, PLAIN))
    whole, few = np.asarray(run(x)), np.asarray(run(x[:5]))
    np.testing.assert_array_equal(whole[:5], few)
    by_xla = BlockMatrix(matrix.parts, "Q8_0", "float32", BlockForms(activations="int8")).product(jnp.asarray(x), PLAIN)
    np.testing.assert_allclose(whole, by_xla, rtol=1e-5, atol=1e-5 * np.abs(few).max())
    exact = BlockMatrix(matrix.parts, "Q8_0", "float32").product(jnp.asarray(x), PLAIN)
    assert 1e-3 < np.abs(whole - exact).max() / np.abs(exact).max() < 2e-2


@pytest.mark.long
@needs_them
def test_a_token_is_the_same_to_the_bit_however_it_was_read(monkeypatch):
    """Alone, in a chunk of any length, beside others, and in a cache of any size: rounding makes much of a last bit."""
    monkeypatch.setattr(choose_forms, "_chosen", {"cpu": KERNEL})
    with load("sprout-s", weights="int8", activations="int8", dtype="float32", progress=False) as model:
        ids, (forward, recipe) = list(range(300, 348)), (model.architecture.forward, model.recipe)
        program = jax.jit(
            lambda params, tokens, start, count, kv: forward(params, recipe, tokens, start, count, kv, None)
        )

        def read(tokens: int, rows: int, capacity: int) -> np.ndarray:
            layout, dtype = model.architecture.cache_layout, recipe.kv_dtype
            kv = allocate(layout, rows, capacity, dtype, model.device)
            found = []
            for start in range(0, len(ids), tokens):
                part = ids[start : start + tokens]
                chunk = np.tile(np.array(part + [0] * (tokens - len(part)), np.int32), (rows, 1))
                numbers = (np.full(rows, number, np.int32) for number in (start, len(part)))
                hidden, kv = program(model.params, chunk, *numbers, kv)
                found.append(np.asarray(hidden)[-1, : len(part)])
            return np.concatenate(found)

        alone = read(1, 1, 64)
        for tokens, rows, capacity in ((48, 1, 64), (32, 1, 256), (20, 1, 64), (5, 1, 128), (1, 4, 64)):
            np.testing.assert_array_equal(read(tokens, rows, capacity), alone, err_msg=f"{tokens} {rows} {capacity}")
