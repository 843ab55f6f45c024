"""A step and a chunk write into the pool that they are given: nothing as large as the pool is copied on the way."""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import knobs, packed
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables
from langchain_gemma_jax.engine.device.programs import Programs, RowSettings, Shape
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.kernels.attention import can_attend
from langchain_gemma_jax.models.configuration.abstract import abstract
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import AttentionForm
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import LayerKV, PageCounts
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.xla_flags import as_users

FULL = published("gemma-3-270m")
CONFIG = FULL.replace(vocab_size=512, width=64, layers=FULL.layers[4:6])  # a local and a global layer
CAPACITY, WHOLE, LOCAL = 256, 3001, 2003  # a pool of 300 to 600 MB, of which nothing is made
LEAST = 2 * 2003 * 64 * 256  # bytes of the smallest array of keys or values
ADDRESSES = {"parameter", "get-tuple-element", "bitcast"}  # operations that say where something is

kernels_run = pytest.mark.skipif(not can_attend(256, jnp.dtype("float32")), reason="the kernels do not run here")
FORMS = [pytest.param(form, marks=kernels_run if form is AttentionForm.KERNEL else ()) for form in AttentionForm]


@pytest.fixture(autouse=True)
def _optimized():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def compiled(dtype, form, key):
    """A program as users' XLA compiles it, whatever flags the tests are run with."""
    recipe, here = (
        dataclasses.replace(default_recipe(dtype, "cpu"), attention=form),
        SingleDevice(jax.local_devices()[0]),
    )
    shape = Shape(Gemma(CONFIG), recipe, CONFIG.vocab_size, CAPACITY, PageCounts(WHOLE, LOCAL), 9, loop_steps=1)
    return lower(Programs(shape, here), Signatures(shape, here), key).compile(as_users())


def assert_in_place(program):
    memory = program.memory_analysis()
    assert memory.alias_size_in_bytes > 4 * LEAST, "the pool that comes back is the one that was given"
    assert memory.temp_size_in_bytes < LEAST // 4, "there is room for a copy of keys or values"
    large = rf"= \w+\[(?:{WHOLE}|{LOCAL}),1,64,256\]\S* ([\w-]+)\("
    entry = program.as_text().partition("\nENTRY ")[2]
    assert "copy" not in re.findall(large, entry)


@pytest.mark.long
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="how XLA:CPU copies")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("dtype", "key"),
    [
        ("bfloat16", ("step", 1, CAPACITY)),
        ("bfloat16", ("read", 16, CAPACITY)),
        ("float32", ("step", 2, CAPACITY)),
        pytest.param("float32", ("step", 1, CAPACITY), marks=pytest.mark.slow),
        pytest.param("bfloat16", ("step", 8, CAPACITY), marks=pytest.mark.slow),
        pytest.param("bfloat16", ("read", 256, CAPACITY), marks=pytest.mark.slow),
        pytest.param("float32", ("read", 256, CAPACITY), marks=pytest.mark.slow),
    ],
)
def test_a_step_and_a_chunk_copy_no_pool(dtype, form, key):
    assert_in_place(compiled(dtype, form, key))


@pytest.mark.long
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="how XLA:CPU copies")
def test_a_copy_would_be_seen(monkeypatch):
    def by_another_dtype(pages, new, *rest):
        wide = kv_cache._put_slots(pages.astype("float32"), new.astype("float32"), *rest)
        return wide.astype(pages.dtype)

    monkeypatch.setattr(kv_cache, "_CONVERTS", True)
    monkeypatch.setattr(kv_cache, "_put_pages", by_another_dtype)
    with pytest.raises(AssertionError, match="room for a copy"):
        assert_in_place(compiled("bfloat16", AttentionForm.PRODUCTS, ("step", 1, CAPACITY)))


@pytest.mark.long
@kernels_run
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_step_by_kernels_looks_at_filled_slots_of_its_own_pages_alone(dtype):
    """All else is NaN, in its own pages too; and it stays as it is."""
    recipe = dataclasses.replace(default_recipe(dtype, "cpu"), attention=AttentionForm.KERNEL)
    device, end, mine = jax.local_devices()[0], 9, 3
    shape = Shape(Gemma(CONFIG), recipe, CONFIG.vocab_size, CAPACITY, PageCounts(6, 5), 2, loop_steps=1)
    specs = abstract(CONFIG, recipe.dtype, recipe.layout)
    params = jax.tree.map(lambda spec: jnp.ones(spec.stored_shape, spec.dtype), specs)
    settings = packed(knobs(seed=0, prompt_length=0, temperature=0.0))[None]
    rows = jax.device_put(RowSettings(settings, (np.full(16, 0xFFFFFFFF, np.uint32),)), device)
    number = lambda value: jax.device_put(np.array([value], np.int32), device)  # noqa: E731
    tables = jax.device_put(Tables(np.array([[mine, 1, 2, 4]], np.int32), np.array([[mine, 1]], np.int32)), device)
    programs = Programs(shape, SingleDevice(device))

    def step(rest):
        """Return what a step picks, and the pool, of zeros in the slots that were read and ``rest`` in all others."""
        empty = programs.empty()()
        fill = lambda array: jnp.full_like(array, rest).at[mine, :, :end].set(0)  # noqa: E731
        pool = KvPool(tuple(LayerKV(fill(kept.keys), fill(kept.values)) for kept in empty.layers), empty.ids)
        picked, _, pool = programs.step(params, number(5), number(end), number(1), tables, pool, rows)
        return picked, pool

    wanted, _ = step(0)
    found, pool = step(np.nan)
    for ours, plain in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(plain))
    for array in (np.asarray(each, np.float32) for kept in pool.layers for each in (kept.keys, kept.values)):
        filled = np.zeros(array.shape, bool)
        filled[mine, :, : end + 1] = True
        assert np.isfinite(array[filled]).all()
        assert np.isnan(array[~filled]).all()
