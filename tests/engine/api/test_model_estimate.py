"""What a device has for the engine, and what a model will take there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from langchain_gemma_jax.engine.device.sequence_kv import physical

from langchain_gemma_jax.engine.api.model_estimate import smallest_conversation, weights_bytes
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.device_memory import HOST_SHARE, SHARE, host_memory, memory_budget
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.tiny import CONFIGS, CONTEXT
from tests.models.int8 import Int8Storage

OURS = {"process_index": 0, "client": SimpleNamespace(process_index=lambda: 0)}  # a device of this process


class Two(SingleDevice):
    """Two devices of one kind."""

    devices = property(lambda self: (self.device, self.device))


def test_the_budget_is_a_share_of_what_there_is():
    card = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 1000}, **OURS)
    host = SimpleNamespace(memory_stats=lambda: None, **OURS)
    assert memory_budget(Settings(memory_budget="3kB"), SingleDevice(card)) == 3000
    assert memory_budget(Settings(), SingleDevice(card)) == memory_budget(Settings(), Two(card)) == int(SHARE * 1000)
    whole = int(HOST_SHARE * host_memory())
    assert memory_budget(Settings(), SingleDevice(host)) == whole
    assert memory_budget(Settings(), Two(host)) == whole // 2  # they are parts of the same host


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_and_cache_are_foretold_each_in_its_own_dtype(name):
    here, ladders = SingleDevice(SimpleNamespace()), Ladders(capacities=(32, CONTEXT))
    dense, packed, half = (
        Shape(Gemma(CONFIGS[name]), recipe, 320, CONTEXT)
        for recipe in (
            Recipe("float32"),
            Recipe("float32", storage=Int8Storage()),
            Recipe("float32", storage=Int8Storage(), cache_dtype="bfloat16"),
        )
    )
    assert weights_bytes(half, here) == weights_bytes(packed, here) < 0.5 * weights_bytes(dense, here)
    ids = 4 * physical(CONTEXT)
    one, other, smaller = (smallest_conversation(shape, ladders) - ids for shape in (dense, packed, half))
    assert one == other == 2 * smaller
