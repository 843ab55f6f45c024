"""The arguments of programs, known before there is anything to call them with."""

from __future__ import annotations

import jax
import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import MOVING
from langchain_gemma_jax.engine.device.programs import PAGES_AT_ONCE, Programs, Shape
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from tests.engine.tiny import CONFIGS, CONTEXT

LADDERS = Ladders(chunks=(4, 16), capacities=(32, CONTEXT), rows=(1, 2), draft=3).for_context(CONTEXT)


@pytest.fixture
def of(model_of):
    def of(name, loop_steps=1):
        model = model_of(name)
        shape = Shape(
            model.architecture, model.recipe, 320, CONTEXT, PageCounts(20, 9, 8), 3, loop_steps=loop_steps, picks=4
        )
        return model, Programs(shape, model.placement), Signatures(shape, model.placement)

    return of


@pytest.mark.parametrize("name", CONFIGS)
def test_the_weights_are_as_they_will_be_loaded(of, name):
    model, _, signatures = of(name)
    assert jax.tree.structure(signatures.params) == jax.tree.structure(model.params)
    for spec, array in zip(jax.tree.leaves(signatures.params), jax.tree.leaves(model.params), strict=True):
        assert (spec.shape, spec.dtype, spec.sharding) == (array.shape, array.dtype, array.sharding)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "loop_steps"),
    [
        ("shared KV", 1),
        ("local and global", 4),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in CONFIGS if name != "shared KV"),
    ],
)
def test_every_program_is_lowered_from_its_key_and_gives_what_is_said(of, name, loop_steps):
    _, programs, signatures = of(name, loop_steps)
    seen = set()
    for key in LADDERS.program_keys(moves_pages=True):
        if key[0] == "read" and key[1] != 4:
            continue  # they differ by a number
        lowered = lower(programs, signatures, key)
        assert lowered.out_tree == jax.tree.structure(signatures.result(key)), key
        assert lowered.in_tree == jax.tree.structure((signatures.arguments(key), {})), key
        seen.add(key[0])
    assert seen == {"read", "pick", "step", "empty", *MOVING}


def test_the_pool_and_the_tables_are_as_they_are_made(of):
    _, programs, signatures = of("local and global")
    made, said = programs.empty()(), signatures.pool
    assert jax.tree.structure(made) == jax.tree.structure(said)
    for array, spec in zip(jax.tree.leaves(made), jax.tree.leaves(said), strict=True):
        assert (array.shape, array.dtype, array.sharding) == (spec.shape, spec.dtype, spec.sharding)
    for capacity, pages in ((32, 4), (CONTEXT, 16)):
        tables = signatures.arguments(("step", 2, capacity))[4]
        assert (tables.whole.shape, tables.local.shape) == ((2, pages), (2, 3))
    *_, contents, pool = signatures.arguments(("put_pages",))
    assert pool == said
    assert {leaf.shape[0] for leaf in jax.tree.leaves(contents)} == {PAGES_AT_ONCE}
    assert {leaf.shape[1:] for leaf in jax.tree.leaves(contents)} == {leaf.shape[1:] for leaf in jax.tree.leaves(said)}


def test_what_is_no_key_is_refused(of):
    _, _, signatures = of("all global")
    for ask in (signatures.arguments, signatures.result):
        with pytest.raises(ValueError, match="expected a program's key, found"):
            ask(("walk", 1))
