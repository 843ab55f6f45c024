"""Products by the kernels: the numbers of a plain product, each row's the same in any company, or an error."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.products import MOST_ROWS, can_multiply, multiply, multiply_dense
from langchain_gemma_jax.kernels.targets import IN_BLOCKS, target
from langchain_gemma_jax.kernels.targets import KINDS as TARGETS
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.weights import PLAIN, Form, Plan
from tests.kernels.made_up_matrices import dense, library, matrix, product, variants

BY_KERNEL = Plan(one_row=Form.KERNEL, few_rows=Form.KERNEL, many_rows=Form.KERNEL)
MANY_ROWS = 64  # of dense matrices and rounded rows, which may have any number

pytestmark = pytest.mark.skipif(
    not kernels().run and "not compiled: " in kernels().why, reason=f"there was no compiler: {kernels().why}"
)


def close_enough(found, parts, kind, x):
    """Equal up to the rounding of float32 sums of so many numbers."""
    weights = dense(kind, parts)
    exact, size = x.astype(np.float64) @ weights.T, np.abs(x.astype(np.float64)) @ np.abs(weights).T
    assert np.all(np.abs(found - exact) <= 2e-6 * size + 1e-30), (kind, np.max(np.abs(found - exact) / (size + 1e-30)))


def in_eight_bits(x):
    """Rows as they are once they are rounded: 254 steps from the largest of each 32 numbers to its opposite."""
    blocks = x.reshape(len(x), -1, 32)
    scales = np.abs(blocks).max(-1, keepdims=True) * (np.float32(1) / np.float32(127))
    inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
    return (np.rint(blocks * inverse) * scales).reshape(x.shape)


def try_shapes(kind, count, seed, loaded=None):
    random, loaded = np.random.default_rng(seed), loaded or library()
    block = BLOCK_FORMATS[kind].elements
    for _ in range(count):
        outputs = int(random.integers(1, 40))
        inputs = block * int(random.integers(1, 90 if block == 1 else 1 + 1200 // block))
        rows = int(random.integers(1, (MANY_ROWS if block == 1 else MOST_ROWS) + 1))
        parts, off = matrix(kind, outputs, inputs, random), int(random.integers(0, 4))
        x = random.standard_normal((rows, inputs)).astype(np.float32)
        row, first = int(random.integers(0, rows)), int(random.integers(0, outputs))
        last = int(random.integers(first, outputs)) + 1
        for variant, rounds in itertools.product(variants(loaded), (False, True)[: 1 + (kind in IN_BLOCKS)]):
            found = product(loaded, variant, kind, parts, x, outputs, off=off, rounded=rounds)
            close_enough(found, parts, kind, in_eight_bits(x) if rounds else x)
            alone = product(loaded, variant, kind, parts, x[row : row + 1], outputs, (first, last), rounded=rounds)
            np.testing.assert_array_equal(alone[0, first:last], found[row, first:last], err_msg=f"{variant} {kind}")
            if rounds:  # any number of rows, in any order
                more = np.concatenate([x, x[::-1], x])
                many = product(loaded, variant, kind, parts, more, outputs, (first, last), rounded=True)
                np.testing.assert_array_equal(
                    many[:, first:last], np.concatenate([found, found[::-1], found])[:, first:last]
                )
            assert np.isnan(np.delete(alone, range(first, last), axis=1)).all(), "others were written"


def try_padding(kind, count, seed):
    """Every variant as XLA calls it: what is padding changes no other row, is not looked at, and comes to zeros."""
    random, loaded = np.random.default_rng(seed), library()
    block = BLOCK_FORMATS[kind].elements
    most = MANY_ROWS if block == 1 else MOST_ROWS
    for _, rounds in itertools.product(range(count), (False, True)[: 1 + (kind in IN_BLOCKS)]):
        outputs, blocks = int(random.integers(1, 300)), int(random.integers(1, 1 + 600 // block))
        rows = int(random.integers(2, (MANY_ROWS if rounds else most) + 1))  # of rounded ones: any number
        parts = matrix(kind, outputs, block * blocks, random)
        x = random.standard_normal((rows, block * blocks)).astype(np.float32)
        run = jax.jit(partial(multiply, kind=kind, rounded=rounds))
        for variant in variants(loaded):
            assert loaded.gemma_jax_choose(variant.encode()) == 0
            whole = np.asarray(run(x, parts, real=np.int32(rows)))
            close_enough(whole, parts, kind, in_eight_bits(x) if rounds else x)
            for real in (-1, 0, 1, *map(int, random.integers(1, rows, 3)), rows + 1):
                kept = min(max(0, real), rows)
                padded = np.where(np.arange(rows)[:, None] < kept, x, np.float32("nan"))
                found = np.asarray(run(padded, parts, real=np.int32(real)))
                np.testing.assert_array_equal(found[:kept], whole[:kept], err_msg=f"{variant} {kind} {real} of {rows}")
                assert not found[kept:].any(), (variant, kind, real, rows)


@pytest.fixture
def chosen_again():
    """The variant that was chosen is chosen again behind a test of all of them."""
    yield
    assert library().gemma_jax_choose(kernels().variant.encode()) == 0


def test_the_kernels_run_here():
    assert kernels().run, kernels().why
    assert list(TARGETS) == list(dict.fromkeys([*TARGETS, *BLOCK_FORMATS])), (
        "a kind without a kernel, or the other way round"
    )


@pytest.mark.parametrize("kind", TARGETS)
def test_random_shapes(kind):
    """Every variant on every shape: by itself, in other company and with other outputs, wherever its arrays lie."""
    try_shapes(kind, 25, seed=1)


@pytest.mark.parametrize("kind", [kind for kind in TARGETS if BLOCK_FORMATS[kind].elements == 1])
def test_rows_that_go_through_some_outputs_at_a_time(kind):
    """Matrices of which only a few outputs stay in a cache, while all rows are multiplied by them."""
    random, loaded, outputs, inputs = np.random.default_rng(8), library(), 53, 4200
    parts = matrix(kind, outputs, inputs, random)
    for rows in (4, 5, 8, 13):
        x = random.standard_normal((rows, inputs)).astype(np.float32)
        for variant in variants(loaded):
            found = product(loaded, variant, kind, parts, x, outputs)
            close_enough(found, parts, kind, x)
            for row in range(rows):
                assert np.array_equal(found[row], product(loaded, variant, kind, parts, x[row : row + 1], outputs)[0])


@pytest.mark.parametrize("kind", IN_BLOCKS)
def test_tiles_give_the_bits_that_registers_give(kind):
    """Matrices of every number of blocks and of outputs that tiles are filled by in part."""
    random, loaded = np.random.default_rng(9), library()
    if "amx" not in variants(loaded):
        pytest.skip("this processor has no tiles")
    block = BLOCK_FORMATS[kind].elements
    for outputs, blocks, rows in itertools.product((1, 15, 16, 33), (1, 2, 7, 8, 9, 20), (3, 16, 17, 40)):
        parts = matrix(kind, outputs, block * blocks, random)
        x = random.standard_normal((rows, block * blocks)).astype(np.float32)
        x[1, :3], x[2] = (np.inf, np.nan, 0), 0
        by_tiles, by_registers = (
            product(loaded, variant, kind, parts, x, outputs, rounded=True) for variant in ("amx", "avx512")
        )
        np.testing.assert_array_equal(by_tiles, by_registers)


@pytest.mark.parametrize("kind", IN_BLOCKS)
def test_several_rows_give_the_bits_of_each_alone(kind):
    """Matrices of every number of blocks and of outputs that registers are filled by in part; groups of all sizes."""
    random, loaded, many = np.random.default_rng(10), library(), 17
    block, tried = BLOCK_FORMATS[kind].elements, {kernels().variant, "avx512"} & set(variants(loaded))
    for outputs, blocks in itertools.product((1, 15, 17, 50), (1, 7, 8, 9, 33)):
        parts = matrix(kind, outputs, block * blocks, random)
        x = random.standard_normal((many, block * blocks)).astype(np.float32)
        x[1, :3], x[2] = (np.inf, np.nan, 0), 0
        for variant in tried:
            alone = [product(loaded, variant, kind, parts, row[None], outputs, rounded=True)[0] for row in x]
            for rows in (2, 3, 5, 8, 9, many):
                found = product(loaded, variant, kind, parts, x[:rows], outputs, rounded=True)
                np.testing.assert_array_equal(found, alone[:rows], err_msg=f"{variant} {outputs} {blocks} {rows}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", TARGETS)
def test_many_random_shapes(kind):
    try_shapes(kind, 5000, seed=2)


@pytest.mark.usefixtures("chosen_again")
@pytest.mark.parametrize("kind", TARGETS)
def test_rows_of_padding_come_to_zeros_and_change_no_other(kind):
    try_padding(kind, 3, seed=6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("chosen_again")
@pytest.mark.parametrize("kind", TARGETS)
def test_rows_of_padding_in_many_random_shapes(kind):
    try_padding(kind, 150, seed=7)


@pytest.mark.parametrize("kind", TARGETS)
def test_what_xla_runs(kind):
    """Large enough to be shared by threads; a row alone has the bits that it has among sixteen."""
    random = np.random.default_rng(3)
    outputs, inputs = 1003, 512
    parts = matrix(kind, outputs, inputs, random)
    x = random.standard_normal((MOST_ROWS, inputs)).astype(np.float32)
    for rounds in (False, True)[: 1 + (kind in IN_BLOCKS)]:
        forms = BlockForms(BlockForm.KERNEL, BlockForm.KERNEL, activations="int8" if rounds else "float32")
        packed = BlockMatrix(tuple(map(jnp.asarray, parts)), kind, "float32", forms)
        run = jax.jit(lambda x: packed.product(x, PLAIN))  # noqa: B023
        assert target(kind, rounded=rounds) in run.lower(x).as_text()
        found = np.asarray(run(x))
        close_enough(found, parts, kind, in_eight_bits(x) if rounds else x)
        for row in (0, 7, 15):
            np.testing.assert_array_equal(run(x[row : row + 1])[0], found[row])
    if kind in IN_BLOCKS:  # still with rounded activations: any number of rows, each with the bits that it has alone
        many = np.concatenate([x] * 5)[:77]
        assert target(kind, rounded=True) in run.lower(many).as_text()
        np.testing.assert_array_equal(run(many), np.concatenate([found] * 5)[:77])
        packed = BlockMatrix(packed.parts, kind, "float32", BlockForms(BlockForm.KERNEL, BlockForm.KERNEL))
    assert (
        target(kind)
        not in jax.jit(lambda x: packed.product(x, PLAIN)).lower(np.ones((17, inputs), np.float32)).as_text()
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dense_products_are_what_other_forms_give(dtype):
    random = np.random.default_rng(4)
    weight = jnp.asarray(random.standard_normal((77, 640)) * 0.02, dtype)
    x = jnp.asarray(random.standard_normal((130, 640)), jnp.float32)
    by_kernel, by_xla = (
        jax.jit(linear, static_argnums=2).lower(x, weight, plan).compile() for plan in (BY_KERNEL, PLAIN)
    )
    assert "gemma_jax" in by_kernel.as_text(), "long prompts have a form of their own"
    found, plain = by_kernel(x, weight), by_xla(x, weight)
    np.testing.assert_allclose(found, plain, rtol=0, atol=2e-5)
    x, plain = x[:5], plain[:5]
    np.testing.assert_array_equal(jax.jit(linear, static_argnums=2)(x, weight, BY_KERNEL), found[:5])
    other_way = Plan(False, Form.KERNEL, Form.KERNEL)  # inputs first: not for kernels
    np.testing.assert_allclose(linear(x, weight.T, other_way), plain, rtol=0, atol=2e-5)


def test_dense_products_have_derivatives():
    random = np.random.default_rng(5)
    x, weight = (jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in ((3, 32), (5, 32)))
    for plan in (BY_KERNEL, PLAIN):
        found = jax.grad(lambda x, w: jnp.sum(linear(x, w, plan) ** 2), argnums=(0, 1))(x, weight)  # noqa: B023
        if plan is BY_KERNEL:
            ours = found
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), ours, found)


def f32(*shape):
    return jnp.ones(shape, jnp.float32)


@pytest.mark.parametrize(
    ("kind", "x", "parts", "out", "words"),
    [
        ("Q8_0", f32(17, 32), [f32(4, 1), f32(4, 1, 32)], (17, 4), "of 1 to 16 rows, [row, in], found [17, 32]"),
        ("F32", f32(8), [f32(4, 8)], (1, 4), "[row, in], found [8]"),
        ("F32", f32(2, 8), [f32(4, 8)], (1, 4), "expected a result [row, out] of 2 rows, found [1, 4]"),
        ("F32", f32(2, 8), [f32(4, 9)], (2, 4), "array 0 of the weights: expected [4, 8] with 1 numbers"),
        ("F32", f32(2, 8), [f32(5, 8)], (2, 4), "expected [4, 8]"),
        ("F32", f32(2, 8), [f32(4, 8)] * 3, (2, 4), "expected 1 arrays of weights, found 3"),
        ("F32", f32(2, 8), [f32(4, 8), f32(1)], (2, 4), "expected how many rows are real, one number in s32"),
        ("F32", f32(2, 8), [f32(4, 8), jnp.ones(2, jnp.int32)], (2, 4), "expected how many rows are real"),
        ("BF16", f32(2, 8), [f32(4, 8)], (2, 4), "has another dtype"),
        ("Q8_0", f32(1, 40), [f32(4, 1), f32(4, 1, 32)], (1, 4), "whole blocks of 32, found 40"),
        ("Q8_0", f32(1, 64), [f32(4, 2).astype("float16"), f32(4, 2, 31).astype("int8")], (1, 4), "found [4, 2, 31]"),
        ("Q4_K", f32(1, 256), [f32(4, 1)] * 4, (1, 4), "expected 5 arrays of weights, found 4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(kind, x, parts, out, words):
    call = jax.ffi.ffi_call(target(kind), jax.ShapeDtypeStruct(out, jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(call)(x, *parts))
    assert f"gemma_jax_product_{kind}: " in str(caught.value)
    assert words in str(caught.value)


def test_other_numbers_of_rows_are_not_for_kernels():
    several = (0, 1, MOST_ROWS, MOST_ROWS + 1)
    assert [can_multiply(rows) for rows in several] == [False, True, True, False]
    assert [can_multiply(rows, dense=True) for rows in several] == [False, True, True, True]
    assert [can_multiply(rows, rounded=True) for rows in several] == [False, True, True, True]
    assert multiply(f32(1, 4), [f32(3, 4)], "F32").tolist() == [[4, 4, 4]]
    assert multiply_dense(f32(2, 4), f32(3, 4)).tolist() == [[4, 4, 4]] * 2
