"""What programs are called with, known before there is anything to call them with."""

from __future__ import annotations

import jax
import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.models.seams.kv_cache import LayerKV
from tests.engine.tiny import CONFIGS, CONTEXT

LADDERS = Ladders(chunks=(4, 16), capacities=(32, CONTEXT), rows=(1, 2), draft=3).for_context(CONTEXT)


def window(config):
    return min((layer.window for layer in config.layers if layer.window is not None), default=None)


@pytest.fixture
def of(model_of):
    def of(name, loop_steps=1):
        model = model_of(name)
        shape = Shape(model.architecture, model.recipe, 320, CONTEXT, loop_steps)
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
    model, programs, signatures = of(name, loop_steps)
    seen = set()
    for key in LADDERS.program_keys(window(model.config)):
        if key[0] == "read" and key[1] != 4:
            continue  # they differ by a number
        lowered = lower(programs, signatures, key)
        assert lowered.out_tree == jax.tree.structure(signatures.result(key)), key
        assert lowered.in_tree == jax.tree.structure((signatures.arguments(key), {})), key
        seen.add(key[0])
    assert seen >= {"read", "pick", "step", "verify", "empty", "resize"}


def test_conversations_are_as_they_are_made(of):
    _, programs, signatures = of("local and global")
    for capacity in LADDERS.capacities:
        made, said = programs.empty(capacity)(), signatures.sequence(capacity)
        same = jax.tree.map(lambda array, spec: (array.shape, array.dtype) == (spec.shape, spec.dtype), made, said)
        assert all(jax.tree.leaves(same))
        assert {array.sharding for array in jax.tree.leaves(made)} == {s.sharding for s in jax.tree.leaves(said)}
    (rings,) = signatures.arguments(("restore", 24, CONTEXT))[1:]
    assert [type(ring) for ring in rings] == [LayerKV]
    assert rings[0].keys.shape[2] == 24


def test_what_is_no_key_is_refused(of):
    _, _, signatures = of("all global")
    for ask in (signatures.arguments, signatures.result):
        with pytest.raises(ValueError, match="expected a program's key, found"):
            ask(("walk", 1))
