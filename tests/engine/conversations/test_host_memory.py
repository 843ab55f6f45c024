"""The host's memory as a device sees it: whatever kinds there are, what comes back is what went."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from langchain_gemma_jax.engine.conversations.host_memory import HostMemory

from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.conversations import host_memory
from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.conversations.prefix_index import Rings
from langchain_gemma_jax.engine.conversations.transfer_costs import TransferCosts
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot
from langchain_gemma_jax.models.seams.placement import SingleDevice

DEVICE = jax.local_devices()[0]
HERE = SingleDevice(DEVICE)


def kinds(*names):
    """A device with these kinds of memory, the first one its own."""
    memories = [SimpleNamespace(kind=name) for name in names]
    ours = {"process_index": 0, "client": SimpleNamespace(process_index=lambda: 0)}
    return SingleDevice(
        SimpleNamespace(addressable_memories=lambda: memories, default_memory=lambda: memories[0], **ours)
    )


@pytest.fixture
def any_works(monkeypatch):
    """Every kind of memory works, on devices that are made up too."""
    monkeypatch.setattr(host_memory, "_works", lambda *_: True)


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
    assert HostMemory(HERE).kind == "numpy"
    assert tried == [kind for kind in host_memory.PREFERRED if kind in {m.kind for m in DEVICE.addressable_memories()}]


def test_a_kind_that_raises_or_changes_bytes_does_not_work(monkeypatch):
    assert not host_memory._works(HERE, "no such memory")
    monkeypatch.setattr(host_memory.np, "array_equal", lambda *_: False)
    for memory in DEVICE.addressable_memories():
        assert not host_memory._works(HERE, memory.kind)


@pytest.mark.parametrize("place", ["probed", "numpy"])
def test_what_comes_back_is_what_went_and_shares_no_memory(strict_transfers, monkeypatch, place):
    if place == "numpy":
        monkeypatch.setattr(host_memory, "_works", lambda *_: False)
    host = HostMemory(HERE)
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


def test_what_comes_from_several_devices_takes_as_much_of_the_host_as_of_all_of_them(any_works):
    assert HostMemory(kinds("device", "pinned_host")).parts == 1
    index = HostIndex(1000)
    several = SimpleNamespace(parts=4, usable=True, put=lambda tree: tree, fetch=lambda tree: tree)
    store = HostStore("m", several, index, TransferCosts(), Metrics())
    store.read.add(1.0, 1)  # so slow that it is worth keeping
    resident = Resident("", 64, 100, object(), token_keys((1, 2)), snapshots=[Snapshot(1, 1, 20, object())])
    assert store.keep(resident, Rings(None))
    assert (store.nbytes, resident.nbytes) == (480, 100)
    (parked,) = index._indexes["m"].residents
    assert store.bytes_back(parked) == 120
    back = store.fetch(parked)
    assert (back.nbytes, back.snapshots[0].nbytes, store.nbytes) == (100, 20, 0)


def test_what_lies_on_another_host_too_is_not_moved(any_works):
    there = kinds("device", "pinned_host")
    elsewhere = SimpleNamespace(devices=there.devices, here=False)
    host = HostMemory(elsewhere)
    assert (host.usable, host.kind) == (False, "numpy")
    store = HostStore("m", host, HostIndex(1000), TransferCosts(), Metrics())
    store.read.add(1.0, 1)
    resident = Resident("", 64, 100, object(), token_keys((1, 2)))
    assert not store.keep(resident, Rings(None))
    assert store.nbytes == 0
