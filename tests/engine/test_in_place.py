"""A step writes into the caches that it is given: nothing as large as a cache is copied on the way."""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.knobs import knobs
from langchain_gemma_jax.engine.device.programs import Programs, RowKnobs, Shape
from langchain_gemma_jax.kernels.attention import can_attend
from langchain_gemma_jax.models.configuration.abstract import abstract
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Attention, AttentionForm
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.xla_flags import as_users

FULL = published("gemma-3-270m")
CONFIG = FULL.replace(vocab_size=512, width=64, layers=FULL.layers[4:6])  # a local and a global layer
CAPACITY = 256
SHAPE = r"(?:f32|bf16|u16)\[1,1,272,256\]"


@pytest.fixture(autouse=True)
def _optimised():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def copies(recipe, rows):
    """The operations of a step's compiled program that give something as large as a cache, but for the writing."""
    programs = Programs(Shape(Gemma(CONFIG), recipe, CONFIG.vocab_size, CAPACITY), SingleDevice(jax.local_devices()[0]))
    params = jax.tree.map(
        lambda spec: jax.ShapeDtypeStruct(spec.stored_shape, jnp.dtype(spec.dtype)),
        abstract(CONFIG, recipe.dtype, recipe.layout),
    )
    sequences = (
        jax.eval_shape(lambda: sequence_kv.empty(CONFIG.cache_layout, CAPACITY, CAPACITY, recipe.dtype)),
    ) * rows
    each = jax.ShapeDtypeStruct((rows,), jnp.int32)
    if rows == 1:
        row = jax.eval_shape(lambda: RowKnobs(knobs(seed=0, prompt_length=0), np.zeros(16, np.uint32)))
        lowered = programs.step.lower(params, each, each, sequences, (row,))
    else:
        lowered = programs.advance.lower(params, each, each, sequences)
    # As users' XLA compiles, whatever flags the tests are run with.
    entry = lowered.compile(as_users()).as_text().partition("\nENTRY ")[2]
    found = re.findall(rf"= {SHAPE}\S* ([\w-]+)\(", entry)
    return [name for name in found if name not in {"parameter", "get-tuple-element", "bitcast"}]


@pytest.mark.long
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="how XLA:CPU copies")
@pytest.mark.parametrize(
    ("dtype", "rows"),
    [
        ("bfloat16", 1),
        ("float32", 2),
        pytest.param("float32", 1, marks=pytest.mark.slow),
        pytest.param("bfloat16", 2, marks=pytest.mark.slow),
    ],
)
def test_a_step_copies_no_cache(dtype, rows):
    assert copies(default_recipe(dtype, "cpu"), rows) == []


@pytest.mark.long
@pytest.mark.skipif(not can_attend(256, jnp.dtype("float32")), reason="the kernels do not run here")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_cache_has_room_for_costs_a_step_that_attends_by_kernels_nothing(dtype):
    """Only the kernel is given anything as large as the cache, and it looks at no slot that holds nothing."""
    by_kernel = dataclasses.replace(default_recipe(dtype, "cpu"), attention=Attention(AttentionForm.KERNEL))
    capacity, end = 5120, 9
    slots = capacity + 16  # with its slack: no other axis is as long
    programs = Programs(
        Shape(Gemma(CONFIG), by_kernel, CONFIG.vocab_size, capacity), SingleDevice(jax.local_devices()[0])
    )
    specs = abstract(CONFIG, by_kernel.dtype, by_kernel.layout)
    params = jax.tree.map(lambda spec: jnp.ones(spec.stored_shape, spec.dtype), specs)
    row = RowKnobs(knobs(seed=0, prompt_length=0, temperature=0.0), np.full(16, 0xFFFFFFFF, np.uint32))
    given = jax.device_put((np.array([5], np.int32), np.array([end], np.int32), (row,)), jax.local_devices()[0])
    tokens, ends, rows = given

    def filled(rest):
        """Return a cache with zeros in the slots that were read, and ``rest`` in the others of the global layer."""
        empty = sequence_kv.empty(CONFIG.cache_layout, capacity, capacity, by_kernel.kv_dtype)
        put = lambda array: array.at[..., end:, :].set(rest) if array.shape[-2:-1] == (slots,) else array  # noqa: E731
        return (jax.tree.map(put, empty),)

    program = programs.step.lower(params, tokens, ends, filled(0), rows).compile(as_users())
    large = set(re.findall(rf"= \w+\[(?:\d+,)+{slots},\d+\]\S* ([\w-]+)\(", program.as_text()))
    assert large <= {
        "parameter",
        "get-tuple-element",
        "bitcast",
        "custom-call",
        "fusion",
        "dynamic-update-slice",
        "bitcast-convert",
    }
    picked, _, kept = program(params, tokens, ends, filled(0), rows)
    wanted = jax.tree.leaves(picked)
    picked, _, kept = program(params, tokens, ends, filled(np.nan), rows)
    for ours, plain in zip(jax.tree.leaves(picked), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(plain))
    untouched = [array for array in jax.tree.leaves(kept) if array.shape[-2:-1] == (slots,)]
    assert untouched
    assert all(np.isnan(np.asarray(array, np.float32)[..., end + 1 :, :]).all() for array in untouched)


@pytest.mark.long
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="how XLA:CPU copies")
def test_copies_would_be_seen():
    assert copies(dataclasses.replace(default_recipe("float32", "cpu"), write_in_loop=False), 1) != []
