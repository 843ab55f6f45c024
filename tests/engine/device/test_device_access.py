"""Every byte and every program that goes to the device is counted, and none goes by accident."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.guards import Guards, GuardWarning
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.device_access import DeviceAccess, out_of_memory
from langchain_gemma_jax.errors import GuardError
from langchain_gemma_jax.models.seams.placement import SingleDevice


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def guards():
    return Guards(lambda: Settings(guards="raise"))


@pytest.fixture
def device(metrics, guards):
    return DeviceAccess(SingleDevice(jax.devices()[0]), metrics, guards, [("step", 1)], lambda: 0)


def test_bytes_are_counted_both_ways(device, metrics, strict_transfers):
    tree = device.put({"a": np.zeros(4, np.int32), "b": (np.zeros((2, 2), np.float32),)})
    device.put(np.zeros(2, np.int32), for_step=True)
    assert {leaf.devices().pop() for leaf in jax.tree.leaves(tree)} == set(device.placement.devices)
    found = device.fetch(tree["b"])
    assert isinstance(found[0], np.ndarray)
    assert (metrics.bytes_to_device, metrics.step_bytes_to_device, metrics.bytes_to_host) == (40, 8, 16)


def test_programs_are_counted_with_their_time(device, metrics, guards):
    program = jax.jit(lambda x: x + 1)
    for _ in range(3):
        assert device.run(("step", 1), program, device.put(np.ones(2, np.float32)))[0] == 2
    assert metrics.dispatches == 3
    assert metrics.dispatch_s > 0
    assert device.seen == {("step", 1)}
    assert guards.trips.by_kind == {}


def test_a_program_that_is_on_no_ladder_trips_the_guard_before_it_runs(device, guards):
    ran = []
    for _ in range(2):
        with pytest.raises(GuardError, match=r"the program \('step', 3\) is not on the ladders"):
            device.run(("step", 3), lambda: ran.append(1))
    assert not ran
    assert guards.trips.by_kind == {"recompile": 2}
    assert device.seen == set()


def test_an_implicit_copy_is_an_error_where_the_guard_raises_and_told_of_where_it_warns(device, guards):
    program = jax.jit(lambda x: x + 1)
    with pytest.raises(GuardError, match=r"transfer guard: the program \('step', 1\) was handed 8 B of host memory"):
        device.run(("step", 1), program, np.ones(2, np.float32))
    guards.settings = lambda: Settings(guards={"transfer": "warn"})
    with pytest.warns(GuardWarning, match="8 B of host memory"):
        assert device.run(("step", 1), program, np.ones(2, np.float32))[0] == 2
    guards.settings = lambda: Settings(guards="off")
    assert device.run(("step", 1), program, np.ones(2, np.float32))[0] == 2
    assert guards.trips.by_kind == {"transfer": 2}


def test_what_is_first_asked_for_after_the_warm_up_trips_the_guard(device, guards):
    device.expect(("step", 1))
    device.bound |= {("step", 2)}
    device.warmed = True
    device.expect(("step", 1))
    with pytest.raises(GuardError, match=r"\('step', 2\) is first asked for after the model was.*max_context"):
        device.expect(("step", 2))
    assert guards.trips.by_kind == {"recompile": 1}


def test_a_program_that_raises_is_counted_too(device, metrics):
    def fail() -> None:
        raise ValueError("by the program")

    with pytest.raises(ValueError, match="by the program"):
        device.run(("step", 1), fail)
    assert metrics.dispatches == 1


def test_what_counts_as_memory_that_is_full():
    assert out_of_memory(jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."))
    assert not out_of_memory(jax.errors.JaxRuntimeError("INTERNAL: something else"))
    assert not out_of_memory(ValueError("RESOURCE_EXHAUSTED"))
