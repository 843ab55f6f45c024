"""Attention by the kernels: its definition, each query's numbers the same in any company, or an error."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.attention import attend, can_attend
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.targets import ATTENTION
from tests.kernels.made_up_attention import STORED, Case, attend_by_hand, by_definition, made_up
from tests.kernels.made_up_matrices import library, variants

pytestmark = pytest.mark.skipif(
    not kernels().run and "not compiled: " in kernels().why, reason=f"there was no compiler: {kernels().why}"
)


def by_xla(case, shares=1):
    """The same through XLA, the rows' caches in so many arrays."""
    caches = list(zip(np.split(case.keys, shares), np.split(case.values, shares), strict=True))

    def run(queries, first, split, caches):
        return attend(queries, first, split, caches, appended=case.behind, window=case.window, cap=case.cap or None)

    return np.asarray(jax.jit(run)(case.queries, case.first, case.split, jax.tree.map(jnp.asarray, caches)))


def part_of(case, row, token):
    """One query of it alone: the same cache, as a step has it."""
    return replace(
        case,
        queries=case.queries[row : row + 1, token : token + 1],
        keys=case.keys[row : row + 1],
        values=case.values[row : row + 1],
        first=case.first[row : row + 1] + np.int32(token),
        split=case.split[row : row + 1],
    )


def try_shapes(dtype, count, seed, loaded=None):
    random, loaded = np.random.default_rng(seed), loaded or library()
    for _ in range(count):
        case = made_up(random, dtype)
        expected = by_definition(case)
        row, token = (int(random.integers(0, size)) for size in case.queries.shape[:2])
        for variant in variants(loaded):
            found = attend_by_hand(loaded, variant, case, apart=False)
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5, err_msg=variant)
            for other, of in ((attend_by_hand(loaded, variant, case, apart=True), found), (
                attend_by_hand(loaded, variant, part_of(case, row, token), apart=False)[0, 0], found[row, token],
            )):  # fmt: skip
                np.testing.assert_array_equal(other, of, err_msg=variant)


@pytest.mark.parametrize("dtype", STORED)
def test_random_shapes(dtype):
    """Every variant, and each query's very bits: by itself, in company, its spans apart or in a row."""
    try_shapes(dtype, 12, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dtype", STORED)
def test_many_random_shapes(dtype):
    try_shapes(dtype, 5000, seed=2)


@pytest.mark.parametrize("dtype", STORED)
def test_what_xla_runs(dtype):
    """On its threads, in pieces of any kind: the bits of one thread. Rows may lie in any number of arrays."""
    kind, random = STORED[dtype], np.random.default_rng(3)
    for tokens, start in ((1, 1500), (8, 700), (70, 300)):
        keys, values = (random.standard_normal((4, 2, start + tokens, 32)).astype(kind) for _ in range(2))
        queries = random.standard_normal((4, tokens, 6, 32)).astype(np.float32)
        first = np.array([start, 0, 17, start - 260], np.int32)
        case = Case(queries, keys, values, first, first)
        found = by_xla(case)
        np.testing.assert_array_equal(found, attend_by_hand(library(), kernels().variant, case, apart=False))
        np.testing.assert_array_equal(found, by_xla(case, shares=2))
        np.testing.assert_array_equal(found, by_xla(case, shares=4))


def test_what_is_not_seen_is_not_read_and_what_is_broken_is_told():
    """Not the slots behind the last token, not those that the window has left: and NaN in what is seen comes out."""
    random = np.random.default_rng(4)
    keys, values = (random.standard_normal((1, 1, 800, 32)).astype(np.float32) for _ in range(2))
    queries, first = random.standard_normal((1, 1, 2, 32)).astype(np.float32), np.array([600], np.int32)
    for window, low in ((1 << 30, 0), (300, 301)):
        case = Case(queries, keys, values, first, first, window=window)
        expected = by_xla(case)
        hidden = [
            np.where((np.arange(800) < low) | (np.arange(800) > 600), np.nan, x.swapaxes(2, 3)) for x in (keys, values)
        ]
        keys_, values_ = (x.swapaxes(2, 3).astype(np.float32) for x in hidden)
        np.testing.assert_array_equal(by_xla(replace(case, keys=keys_, values=values_)), expected)
        for broken in ("keys", "values"):
            array = getattr(case, broken).copy()
            array[0, 0, low] = np.nan
            assert np.isnan(by_xla(replace(case, **{broken: array}))).all(), broken


@pytest.mark.parametrize("first", [-(2**31), -1, 39, 40, 1000, 2**31 - 1])
@pytest.mark.parametrize(("behind", "tokens"), [(0, 1), (0, 5), (20, 20)])
def test_positions_that_cannot_be_read_nothing_else(first, behind, tokens):
    """Whatever positions say, nothing but the cache is read. (With sanitizers, this would be seen.)"""
    one = np.ones((1, 1, 40, 16), np.float32)
    at = np.array([first], np.int32)
    case = Case(np.ones((1, tokens, 2, 16), np.float32), one, one, at, at, behind)
    for window in (7, 1 << 30):
        for apart in (False, True):
            found = attend_by_hand(library(), kernels().variant, replace(case, window=window), apart=apart)
            assert np.isin(found.round(4), [0, 1]).all()
        np.testing.assert_array_equal(by_xla(replace(case, window=window)), found)


def f32(*shape):
    return jnp.ones(shape, jnp.float32)


def call(queries=(2, 1, 4, 16), first=2, split=2, arrays=((2, 2, 8, 16),) * 2, out=(2, 1, 64), **attributes):
    arrays = [array if isinstance(array, jax.Array) else f32(*array) for array in arrays]
    given = {"window": np.int64(8), "cap": np.float32(0), "behind": np.int64(0)} | attributes
    run = jax.ffi.ffi_call(ATTENTION, jax.ShapeDtypeStruct(out, jnp.float32))
    positions = (jnp.zeros(size, jnp.int32) for size in (first, split))
    return jax.block_until_ready(jax.jit(lambda *args: run(*args, **given))(f32(*queries), *positions, *arrays))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queries": (2, 1, 4, 15)}, "dim a multiple of 16, found [2, 1, 4, 15]"),
        ({"queries": (2, 4, 16)}, "expected queries [row, token, head, dim]"),
        ({"out": (2, 1, 63)}, "expected a result [row, token, head * dim] for queries [2, 1, 4, 16], found [2, 1, 63]"),
        ({"first": 1}, "expected positions of 2 rows, found [1]"),
        ({"split": 3}, "expected positions of 2 rows, found [3]"),
        ({"arrays": ((2, 2, 8, 16),)}, "equal shares of 2 rows, found 1 arrays"),
        ({"arrays": ()}, "found 0 arrays"),
        ({"arrays": ((1, 2, 8, 16),) * 6}, "found 6 arrays"),
        ({"arrays": ((1, 2, 8, 16),) * 2}, "expected keys 0 [2, kv_head, slot, 16]"),
        ({"arrays": ((2, 3, 8, 16),) * 2}, "found [2, 3, 8, 16]"),
        ({"arrays": ((2, 2, 8, 32),) * 2}, "found [2, 2, 8, 32]"),
        ({"arrays": ((2, 2, 8, 16), (2, 2, 9, 16))}, "expected values 0 as the keys before it are"),
        ({"arrays": ((2, 2, 8, 16), (2, 4, 8, 16))}, "expected values 0 as the keys before it are"),
        ({"arrays": (f32(2, 2, 8, 16), f32(2, 2, 8, 16).astype("bfloat16"))}, "expected values 0 as the keys"),
        ({"arrays": (f32(2, 2, 8, 16).astype("int8"),) * 2}, "expected keys 0 in f32, f16 or bf16"),
        ({"window": np.int64(0)}, "expected a window of 1 or more, found 0"),
        ({"cap": np.float32(-1)}, "expected a cap that is not negative"),
        ({"cap": np.float32("nan")}, "expected a cap that is not negative"),
        ({"behind": np.int64(8)}, "fewer slots behind the ring than there are, found 8 of 8"),
        ({"behind": np.int64(-1)}, "fewer slots behind the ring"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given, words):
    call()
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        call(**given)
    assert "gemma_jax_attention: " in str(caught.value)
    assert words in str(caught.value)


def test_other_heads_and_dtypes_are_not_for_kernels():
    asked = [(16, "float32"), (24, "float32"), (256, "bfloat16"), (64, "float16"), (64, "int8")]
    assert [can_attend(size, jnp.dtype(dtype)) for size, dtype in asked] == [True, False, True, True, False]
