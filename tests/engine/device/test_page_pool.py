"""The pool of pages: its bytes, and that what writes, copies, takes or puts touches only the pages that are named."""

from __future__ import annotations

import mmap
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.pages import PageSizes
from langchain_gemma_jax.engine.device import page_pool
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables
from langchain_gemma_jax.kernels.attention import can_attend
from langchain_gemma_jax.models.recipes import AttentionForm, Recipe
from langchain_gemma_jax.models.seams.kv_cache import AXES, LayerKV, PageCounts
from tests.engine.device.made_up_pool import COUNTS, by_kind, filled, same, shape_of
from tests.engine.tiny import CONFIGS, RECIPES, WINDOW

each = pytest.mark.parametrize("name", CONFIGS)


@each
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_bytes_are_those_of_the_arrays(name, dtype):
    shape = shape_of(name, dtype)
    pool = page_pool.empty(shape.layout, COUNTS, shape.recipe)
    sizes = page_pool.page_bytes(shape.layout, dtype, COUNTS.slots)
    for local, size, count in ((False, sizes.whole, COUNTS.whole), (True, sizes.local, COUNTS.local)):
        assert sum(array.nbytes for array in by_kind(shape, pool)[local]) == size * count
    specs = page_pool.abstract_pool(shape.layout, COUNTS, dtype)
    assert jax.tree.structure(pool) == jax.tree.structure(specs)
    for array, spec in zip(jax.tree.leaves(pool), jax.tree.leaves(specs), strict=True):
        assert (array.shape, array.dtype) == (spec.shape, spec.dtype)


def test_a_layer_that_shares_keys_and_values_has_no_pages():
    layout = CONFIGS["shared KV"].cache_layout
    pool = page_pool.abstract_pool(layout, COUNTS, "float32")
    assert [layer is None for layer in pool.layers] == [False, False, True, True]
    assert page_pool.window_of(layout) == WINDOW
    assert page_pool.window_of(CONFIGS["a wide window"].cache_layout) == 40
    everywhere = CONFIGS["all global"].cache_layout
    assert page_pool.window_of(everywhere) is None
    assert page_pool.page_bytes(everywhere, "float32", 8) == PageSizes(whole=4 * 8 + 4 * 2 * 8 * 8 * 4, local=0)


@pytest.mark.skipif(not can_attend(32, jnp.dtype("float32")), reason="the kernels do not run here")
def test_kernels_attend_where_all_heads_suit_them_and_they_are_asked_for():
    layout, recipe = CONFIGS["by kernels"].cache_layout, RECIPES["by kernels"]
    assert page_pool.attends_by_kernel(layout, recipe)
    assert not page_pool.attends_by_kernel(layout, Recipe("float32"))
    assert not page_pool.attends_by_kernel(CONFIGS["all global"].cache_layout, recipe)  # heads of 8 numbers


@pytest.mark.skipif(not can_attend(32, jnp.dtype("float32")), reason="the kernels do not run here")
@pytest.mark.skipif(sys.platform != "linux", reason="only there is it known what a process takes")
def test_a_pool_for_kernels_takes_no_memory_before_it_is_written_to():
    counts = PageCounts(1 << 12, 1 << 12)
    taken = {}
    for recipe in (RECIPES["by kernels"], Recipe("float32")):
        program = jax.jit(partial(page_pool.empty, CONFIGS["by kernels"].cache_layout, counts, recipe))
        ready = program.lower().compile()
        before = _resident_bytes()
        pool = jax.block_until_ready(ready())
        taken[recipe.attention] = (_resident_bytes() - before) / sum(leaf.nbytes for leaf in jax.tree.leaves(pool))
        del pool
    assert taken[AttentionForm.KERNEL] < 0.1
    assert taken[AttentionForm.PRODUCTS] > 0.5, "it would be seen"


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_keys_and_values_are_divided_as_the_placement_says_and_ids_are_whole():
    where = SimpleNamespace(sharding=lambda shape=(), axes=None: (shape, axes))
    specs = page_pool.abstract_pool(CONFIGS["shared KV"].cache_layout, COUNTS, "float32")
    found = page_pool.shardings(where, (specs, specs.ids))
    assert found[1] == found[0].ids == (specs.ids.shape, None)
    for kept, homes in zip(specs.layers, found[0].layers, strict=True):
        assert homes is None if kept is None else homes == LayerKV(*((kept.keys.shape, AXES),) * 2)


def test_ids_are_noted_at_their_places_and_padding_nowhere():
    """Beside lists: rows of several lengths, chunks that end behind the last page, tables in any order."""
    numbers, slots, pages, entries = np.random.default_rng(11), 4, 20, 3
    note = jax.jit(page_pool.note_ids)
    for _ in range(40):
        rows, tokens = 3, 7
        ids = numbers.integers(0, 1000, (pages, slots)).astype(np.int32)
        table = numbers.permutation(np.arange(1, pages))[: rows * entries].reshape(rows, entries).astype(np.int32)
        count = numbers.integers(0, tokens + 1, rows).astype(np.int32)
        start = np.array([numbers.integers(0, entries * slots - own + 1) for own in count], np.int32)
        chunk = numbers.integers(1000, 2000, (rows, tokens)).astype(np.int32)
        wanted = ids.copy()
        for row in range(rows):
            for at, token in enumerate(chunk[row, : count[row]], start[row]):
                wanted[table[row, at // slots], at % slots] = token
        found = np.array(note(KvPool((), jnp.asarray(ids)), table, chunk, start, count).ids)
        np.testing.assert_array_equal(found[1:], wanted[1:])  # page 0 has what is padding


@each
def test_pages_are_copied_taken_and_put_where_they_are_named_alone(name):
    shape, numbers = shape_of(name), np.random.default_rng(5)
    copy, take, put = (
        jax.jit(partial(work, layout=shape.layout))
        for work in (page_pool.copy_pages, page_pool.take_pages, page_pool.put_pages)
    )
    few = PageCounts(3, 3, COUNTS.slots)
    for _ in range(5):
        pool = filled(shape)
        before = by_kind(shape, pool)
        chosen = {  # two pages and, as padding, nobody's
            local: [
                np.array([*some, 0], np.int32) for some in np.split(numbers.permutation(np.arange(1, count))[:4], 2)
            ]
            for local, count in ((False, COUNTS.whole), (True, COUNTS.local))
        }
        source, target = (Tables(chosen[False][side], chosen[True][side]) for side in (0, 1))
        given = filled(shape, few, first=7)
        contents = by_kind(shape, given)
        copied, taken = copy(pool, source=source, target=target), take(pool, tables=source)
        written = put(pool, tables=target, contents=given)
        wanted: dict[str, dict[bool, list[np.ndarray]]] = {
            kind: {False: [], True: []} for kind in ("copy", "take", "put")
        }
        for local, (come, go) in chosen.items():
            for array, new in zip(before[local], contents[local], strict=True):
                wanted["take"][local].append(array[come])
                wanted["copy"][local].append(_with(array, go, array[come]))
                wanted["put"][local].append(_with(array, go, new))
        assert same(by_kind(shape, copied), wanted["copy"])
        assert same(by_kind(shape, taken), wanted["take"])
        assert same(by_kind(shape, written), wanted["put"])


def _with(array, pages, new):
    found = array.copy()
    found[pages] = new
    return found
