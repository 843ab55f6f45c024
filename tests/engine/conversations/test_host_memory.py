"""The host's memory as a device sees it: whatever kinds there are, what comes back is what went."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.conversations import host_memory
from langchain_gemma_jax.engine.conversations.host_memory import HostMemory

DEVICE = jax.local_devices()[0]


def kinds(*names):
    """A device with these kinds of memory, the first one its own."""
    memories = [SimpleNamespace(kind=name) for name in names]
    return SimpleNamespace(addressable_memories=lambda: memories, default_memory=lambda: memories[0])


@pytest.fixture
def any_works(monkeypatch):
    """Every kind of memory works, on devices that are made up too."""
    monkeypatch.setattr(host_memory, "_works", lambda _device, kind: SimpleNamespace(memory_kind=kind))
    monkeypatch.setattr(host_memory.jax.sharding, "SingleDeviceSharding", lambda *_, **__: None)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("device", "pinned_host"), "pinned_host"),  # GPU
        (("device", "pinned_host", "unpinned_host"), "pinned_host"),  # TPU, CPU
        (("device", "unpinned_host"), "unpinned_host"),
        (("unpinned_host",), "numpy"),  # that is the device's own
        (("device",), "numpy"),
    ],
)
def test_what_a_platform_has_is_asked_and_not_assumed(any_works, names, chosen):
    assert HostMemory(kinds(*names)).kind == chosen


def test_a_kind_that_does_not_work_is_not_used(monkeypatch):
    tried = []

    def works(_device, kind):
        tried.append(kind)

    monkeypatch.setattr(host_memory, "_works", works)
    assert HostMemory(DEVICE).kind == "numpy"
    assert tried == [kind for kind in host_memory.PREFERRED if kind in {m.kind for m in DEVICE.addressable_memories()}]


def test_a_kind_that_raises_or_changes_bytes_does_not_work(monkeypatch):
    assert host_memory._works(DEVICE, "no such memory") is None
    monkeypatch.setattr(host_memory.np, "array_equal", lambda *_: False)
    for memory in DEVICE.addressable_memories():
        assert host_memory._works(DEVICE, memory.kind) is None


@pytest.mark.parametrize("place", ["probed", "numpy"])
def test_what_comes_back_is_what_went_and_shares_no_memory(strict_transfers, monkeypatch, place):
    if place == "numpy":
        monkeypatch.setattr(host_memory, "_works", lambda *_: None)
    host = HostMemory(DEVICE)
    assert (host.kind == "numpy") == (place == "numpy")
    numbers = [np.arange(5000, dtype=np.float32), np.ones((2, 3), np.int32)]
    tree = jax.device_put(numbers, DEVICE)
    kept = host.put(tree)
    for leaf in jax.tree.leaves(tree):
        leaf.delete()
    back = host.fetch(kept)
    del kept
    for before, after in zip(numbers, back, strict=True):
        assert np.array_equal(before, np.asarray(after))
        assert (after.devices(), after.sharding.memory_kind) == ({DEVICE}, DEVICE.default_memory().kind)
    # They can be given away, as conversations are.
    donated = jax.jit(lambda x: x * 2, donate_argnums=0)(back[0])
    assert np.array_equal(np.asarray(donated), numbers[0] * 2)
    assert back[0].is_deleted()
