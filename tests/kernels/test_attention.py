"""Attention by the kernels: its definition, each query's numbers the same in any company, or an error."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.attention import Places, attend, can_attend, vacant, write_and_attend
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.targets import ATTENTION
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import LayerKV
from tests.kernels.made_up_attention import STORED, Case, as_numbers, as_stored, attend_by_hand, by_definition, made_up
from tests.kernels.made_up_matrices import library, variants

pytestmark = pytest.mark.skipif(
    not kernels().run and "not compiled: " in kernels().why, reason=f"there was no compiler: {kernels().why}"
)


def places_of(case):
    return Places(*(jnp.asarray(column) for column in case.places.T))


def by_xla(case):
    """The same through XLA."""

    def run(queries, places, table, pages):
        return attend(queries, places, table, pages, window=case.window, cap=case.cap or None)

    return np.asarray(jax.jit(run)(case.queries, places_of(case), case.table, (case.keys, case.values)))


def part_of(case, row, token):
    """One query of it alone: the same pages, as a step has them."""
    first, _, until = case.places[row]
    return replace(
        case,
        queries=case.queries[row : row + 1, token : token + 1],
        places=np.array([[first + token, 1, until]], np.int32),
        table=case.table[row : row + 1],
    )


def elsewhere(case, random):
    """The same with its pages in other places."""
    order = random.permutation(case.keys.shape[0])
    where = np.argsort(order).astype(np.int32)
    return replace(case, keys=case.keys[order], values=case.values[order], table=where[case.table])


def try_shapes(dtype, count, seed, loaded=None):
    random, loaded = np.random.default_rng(seed), loaded or library()
    for _ in range(count):
        case = made_up(random, dtype)
        expected = by_definition(case)
        rows = np.flatnonzero(case.places[:, 1])
        row = int(random.choice(rows)) if rows.size else 0
        token = int(random.integers(0, max(case.places[row, 1], 1)))
        moved = elsewhere(case, random)
        for variant in variants(loaded):
            found = attend_by_hand(loaded, variant, case, apart=False)
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5, err_msg=variant)
            np.testing.assert_array_equal(attend_by_hand(loaded, variant, case, apart=True), found, err_msg=variant)
            np.testing.assert_array_equal(attend_by_hand(loaded, variant, moved, apart=False), found, err_msg=variant)
            if rows.size:
                alone = attend_by_hand(loaded, variant, part_of(case, row, token), apart=False)
                np.testing.assert_array_equal(alone[0, 0], found[row, token], err_msg=variant)


@pytest.mark.parametrize("dtype", STORED)
def test_random_shapes(dtype):
    """Every variant, and each query's very bits: alone, in company, spans apart or in a row, pages here or there."""
    try_shapes(dtype, 12, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dtype", STORED)
def test_many_random_shapes(dtype):
    try_shapes(dtype, 5000, seed=2)


@pytest.mark.parametrize("dtype", STORED)
def test_what_xla_runs(dtype):
    """On its threads, in pieces of any kind: the bits of one thread."""
    random = np.random.default_rng(3)
    for tokens in (1, 8, 70):
        case = made_up(random, dtype, tokens=tokens)
        np.testing.assert_array_equal(by_xla(case), attend_by_hand(library(), kernels().variant, case, apart=False))


@pytest.mark.parametrize("dtype", STORED)
def test_new_tokens_are_written_where_they_belong_and_nothing_else_is(dtype):
    """In place, whatever the shapes, and without padding; and what is seen then is what attention alone sees."""
    random = np.random.default_rng(7)
    for _ in range(6):
        case = made_up(random, dtype)
        rows, tokens, _, dim = case.queries.shape
        shape = (rows, case.keys.shape[1], tokens, dim)
        new = [random.standard_normal(shape).astype(np.float32) for _ in range(2)]

        def run(queries, places, table, pages, new, case=case):
            return write_and_attend(queries, places, table, pages, new, window=case.window, cap=case.cap or None)

        expected = [case.keys.copy(), case.values.copy()]
        for row, (first, count, _) in enumerate(case.places):
            for token in range(count):
                page, slot = case.at(row, first + token)
                for array, numbers in zip(expected, new, strict=True):
                    array[page, :, slot] = as_stored(numbers[row, :, token], dtype)
        given = tuple(jnp.array(each, copy=True) for each in (case.keys, case.values))
        addresses = [array.unsafe_buffer_pointer() for array in given]
        program = jax.jit(run, donate_argnums=3)
        mixed, *pages = program(case.queries, places_of(case), case.table, given, new)
        assert [array.unsafe_buffer_pointer() for array in pages] == addresses
        for found, wanted in zip(map(np.asarray, pages), expected, strict=True):
            if dtype == "int8":  # a number between two codes may become either: nothing else may differ
                codes = [each[..., :-4].astype(int) for each in (found, wanted)]
                assert np.abs(codes[0] - codes[1]).max() <= 1
                np.testing.assert_allclose(as_numbers(found), as_numbers(wanted), atol=0.1)
            else:
                np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
        keys, values = map(np.asarray, pages)
        np.testing.assert_array_equal(mixed, by_xla(replace(case, keys=keys, values=values)))


def test_heads_are_rounded_alike_in_any_chunk_and_by_xla():
    """The very bytes, whatever else is written; and by XLA the same but for numbers between two codes."""
    random, dim = np.random.default_rng(11), 48
    new = [random.standard_normal((1, 3, 20, dim)).astype(np.float32) * 10 for _ in range(2)]
    new[0][0, 1, 4], new[0][0, 2, 5, 7] = 0, np.nan

    def written(chunks, write):
        pages = tuple(jnp.zeros((6, 3, 8, dim + 4), jnp.int8) for _ in range(2))
        table, at = jnp.array([[3, 1, 5]]), 0
        for count in chunks:
            part = tuple(jnp.asarray(each[:, :, at : at + count]) for each in new)
            pages = write(pages, table, part, jnp.array([at]), jnp.array([count]))
            at += count
        return [np.asarray(each) for each in pages]

    def by_kernel(pages, table, part, start, count):
        queries = jnp.ones((1, part[0].shape[2], 3, dim))
        places = Places(start, count, jnp.zeros_like(start))
        return write_and_attend(queries, places, table, pages, part, window=None, cap=None)[1:]

    def by_products(pages, table, part, start, count):
        found = kv_cache.write(LayerKV(*pages), table, *part, start, count)
        return found.keys, found.values

    kernel = jax.jit(by_kernel, donate_argnums=0)
    whole = written([20], kernel)
    for chunks in ([1] * 20, [7, 1, 12]):
        for one, other in zip(written(chunks, kernel), whole, strict=True):
            np.testing.assert_array_equal(one, other)
    for ours, theirs in zip(whole, written([9, 11], jax.jit(by_products)), strict=True):
        a, b = as_numbers(ours[1:]), as_numbers(theirs[1:])
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, atol=0.5, equal_nan=True)
        sound = ~np.isnan(a).any(-1)
        assert (ours[1:][sound] != theirs[1:][sound]).mean() < 0.02


def test_what_is_not_seen_is_not_read_and_what_is_broken_is_told():
    """Not the slots behind the last token, not those that the window has left: and NaN in what is seen comes out."""
    random = np.random.default_rng(4)
    keys, values = (random.standard_normal((13, 1, 64, 32)).astype(np.float32) for _ in range(2))
    queries, places = random.standard_normal((1, 1, 2, 32)).astype(np.float32), np.array([[600, 1, 0]], np.int32)
    table = np.arange(13, dtype=np.int32)[None]
    for window, low in ((1 << 30, 0), (300, 301)):
        case = Case(queries, keys, values, places, table, window=window)
        expected = by_xla(case)
        hidden = (np.arange(13 * 64) < low) | (np.arange(13 * 64) > 600)
        keys_, values_ = (np.where(hidden.reshape(13, 1, 64, 1), np.float32(np.nan), x) for x in (keys, values))
        np.testing.assert_array_equal(by_xla(replace(case, keys=keys_, values=values_)), expected)
        for broken in ("keys", "values"):
            array = getattr(case, broken).copy()
            array[low // 64, 0, low % 64] = np.nan
            assert np.isnan(by_xla(replace(case, **{broken: array}))).all(), broken


def test_positions_and_pages_that_cannot_be_read_nothing_else():
    """Whatever positions and tables say, nothing but the pages is read. (With sanitizers, this would be seen.)"""
    one = np.ones((2, 1, 20, 16), np.float32)
    for first, page, tokens in itertools.product(
        (-(2**31), -1, 39, 40, 1000, 2**31 - 1), (-1, 1, 2, 2**31 - 1), (1, 5)
    ):
        places, table = np.array([[first, tokens, 0]], np.int32), np.array([[0, page]], np.int32)
        case = Case(np.ones((1, tokens, 2, 16), np.float32), one, one, places, table)
        for window in (7, 1 << 30):
            for apart in (False, True):
                found = attend_by_hand(library(), kernels().variant, replace(case, window=window), apart=apart)
                assert np.isin(found.round(4), [0, 1]).all()
            np.testing.assert_array_equal(by_xla(replace(case, window=window)), found)


def test_vacant_memory_is_taken_as_it_is_written():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not say what is resident")
    before, size = resident(), 1 << 30
    large = jax.block_until_ready(jax.jit(lambda: vacant((size,), jnp.dtype("uint8")))())
    assert large.shape == (size,)
    assert resident() - before < size // 4


def f32(*shape):
    return jnp.ones(shape, jnp.float32)


def call(
    queries=(2, 1, 4, 16), places=(2, 3), table=(2, 5), pages=((9, 2, 8, 16),) * 2, new=(), out=(2, 1, 64), **given
):
    arrays = [array if isinstance(array, jax.Array) else f32(*array) for array in (*pages, *new)]
    given = {"window": np.int64(8), "cap": np.float32(0)} | given
    same = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays[: 2 if new else 0]]
    aliases = {3: 1, 4: 2} if new else {}
    result = jax.ShapeDtypeStruct(out, jnp.float32)
    run = jax.ffi.ffi_call(ATTENTION, (result, *same) if new else result, input_output_aliases=aliases)
    numbers = (jnp.zeros(size, jnp.int32) for size in (places, table))
    return jax.block_until_ready(jax.jit(lambda *args: run(*args, **given))(f32(*queries), *numbers, *arrays))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queries": (2, 1, 4, 15)}, "dim a multiple of 16, found [2, 1, 4, 15]"),
        ({"queries": (2, 4, 16)}, "expected queries [row, token, head, dim]"),
        ({"out": (2, 1, 63)}, "expected a result [row, token, head * dim] for queries [2, 1, 4, 16], found [2, 1, 63]"),
        ({"places": (1, 3)}, "expected places [2, 3], found [1, 3]"),
        ({"places": (2, 2)}, "expected places [2, 3], found [2, 2]"),
        ({"table": (3, 5)}, "expected a table [2, entry], found [3, 5]"),
        ({"pages": ((9, 2, 8, 16),)}, "found 4 arrays and 1"),
        ({"pages": ((9, 3, 8, 16),) * 2}, "expected keys [page, kv_head, slot, 16]"),
        ({"pages": ((9, 2, 8, 32),) * 2}, "found [9, 2, 8, 32]"),
        ({"pages": ((9, 2, 8, 16), (9, 2, 9, 16))}, "expected values as the keys [9, 2, 8, 16], found [9, 2, 9, 16]"),
        ({"pages": (f32(9, 2, 8, 16), f32(9, 2, 8, 16).astype("bfloat16"))}, "expected values as the keys"),
        ({"pages": (f32(9, 2, 8, 16).astype("uint8"),) * 2}, "expected keys in f32, f16, bf16 or s8"),
        ({"pages": (f32(9, 2, 8, 16).astype("int8"),) * 2}, "expected keys [page, kv_head, slot, 20]"),
        ({"new": ((2, 2, 1, 16), (2, 2, 2, 16))}, "expected new keys and values [2, 2, 1, 16] as the pages are"),
        ({"new": (f32(2, 2, 1, 16).astype("bfloat16"),) * 2}, "expected new keys and values [2, 2, 1, 16] as"),
        ({"window": np.int64(0)}, "expected a window of 1 or more, found 0"),
        ({"cap": np.float32(-1)}, "expected a cap that is not negative"),
        ({"cap": np.float32("nan")}, "expected a cap that is not negative"),
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
