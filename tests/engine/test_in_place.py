"""A step writes into the caches that it is given: nothing as large as a cache is copied on the way."""

from __future__ import annotations

import dataclasses
import re
import time

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
    """Neither attention nor writing goes through 130,000 slots that hold nothing: it would take many times as long."""
    by_kernel = dataclasses.replace(default_recipe(dtype, "cpu"), attention=Attention(AttentionForm.KERNEL))
    steps = [step_of(by_kernel, capacity) for capacity in (1024, 131072)]
    times = [[], []]
    for _ in range(12):
        for step, taken in zip(steps, times, strict=True):
            began = time.perf_counter()
            step()
            taken.append(time.perf_counter() - began)
    small, large = map(min, times)
    assert large < 3 * small


def step_of(recipe, capacity):
    """What makes one token behind a few, as users' XLA compiles it."""
    context = max(CAPACITY, capacity)
    programs = Programs(Shape(Gemma(CONFIG), recipe, CONFIG.vocab_size, context), SingleDevice(jax.local_devices()[0]))
    specs = abstract(CONFIG, recipe.dtype, recipe.layout)
    params = jax.tree.map(lambda spec: jnp.ones(spec.stored_shape, spec.dtype), specs)
    sequence = sequence_kv.empty(CONFIG.cache_layout, capacity, context, recipe.dtype)
    row = RowKnobs(knobs(seed=0, prompt_length=0, temperature=0.0), np.full(16, 0xFFFFFFFF, np.uint32))
    given = jax.device_put((np.array([5], np.int32), np.array([9], np.int32), (row,)), jax.local_devices()[0])
    tokens, ends, rows = given
    kept = [(sequence,)]
    program = programs.step.lower(params, tokens, ends, kept[0], rows).compile(as_users())

    def step():
        picked, _, kept[0] = program(params, tokens, ends, kept[0], rows)
        jax.block_until_ready((picked, kept[0]))

    step()
    return step


@pytest.mark.long
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="how XLA:CPU copies")
def test_copies_would_be_seen():
    assert copies(dataclasses.replace(default_recipe("float32", "cpu"), write_in_loop=False), 1) != []
