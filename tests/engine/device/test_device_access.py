"""Every byte and every program that goes to the device is counted, and none goes by accident."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.guards import Guard
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.device.device_access import DeviceAccess, out_of_memory
from langchain_gemma_jax.errors import GuardError
from langchain_gemma_jax.models.placement import SingleDevice


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def device(metrics):
    return DeviceAccess(
        SingleDevice(jax.devices()[0]), metrics, Guard("recompile", "raise", metrics.guard_trips), [("step", 1)]
    )


def test_bytes_are_counted_both_ways(device, metrics, strict_transfers):
    tree = device.put({"a": np.zeros(4, np.int32), "b": (np.zeros((2, 2), np.float32),)})
    device.put(np.zeros(2, np.int32), for_step=True)
    assert {leaf.devices().pop() for leaf in jax.tree.leaves(tree)} == set(device.placement.devices)
    found = device.fetch(tree["b"])
    assert isinstance(found[0], np.ndarray)
    assert (metrics.bytes_to_device, metrics.step_bytes_to_device, metrics.bytes_to_host) == (40, 8, 16)


def test_programs_are_counted_with_their_time(device, metrics):
    program = jax.jit(lambda x: x + 1)
    for _ in range(3):
        assert device.run(("step", 1), program, device.put(np.ones(2, np.float32)))[0] == 2
    assert metrics.dispatches == 3
    assert metrics.dispatch_s > 0
    assert device.seen == {("step", 1)}
    assert metrics.guard_trips == {}


def test_a_program_that_is_on_no_ladder_trips_the_guard_before_it_runs(device, metrics):
    ran = []
    for _ in range(2):
        with pytest.raises(GuardError, match=r"the program \('step', 3\) is not on the ladders"):
            device.run(("step", 3), lambda: ran.append(1))
    assert not ran
    assert metrics.guard_trips == {"recompile": 2}
    assert device.seen == set()


def test_an_implicit_copy_is_an_error(device):
    program = jax.jit(lambda x: x + 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
        device.run(("step", 1), program, np.ones(2, np.float32))


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
