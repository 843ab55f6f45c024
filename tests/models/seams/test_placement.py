"""A single device has every array whole. A second placement, over two devices, is in tests/engine/two_devices.py."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Layout, abstract, walk
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice, placement_of
from tests.parity.tiny import small

DEVICE = jax.local_devices()[0]
HERE = SingleDevice(DEVICE)

OURS = {"process_index": 0, "client": SimpleNamespace(process_index=lambda: 0)}  # a device of this process


def with_memory(**statistics):
    return SimpleNamespace(memory_stats=lambda: statistics or None, **OURS)


class Several(SingleDevice):
    """Devices that are made up, to ask for their memory."""

    def __init__(self, *devices):
        object.__setattr__(self, "found", devices)

    devices = property(lambda self: self.found)


def test_a_single_device_has_everything_whole():
    whole = jax.sharding.SingleDeviceSharding(DEVICE)
    assert HERE.sharding() == HERE.sharding((4, 6), ("ffw", "width")) == whole
    assert HERE.sharding_of(ArraySpec((3,), "int8", axes=("ffw",))) == whole
    tree = HERE.put({"a": np.ones(3, np.float32), "b": [np.zeros((2, 2), np.int8)]}, {"a": None, "b": [None]})
    assert {leaf.sharding for leaf in jax.tree.leaves(tree)} == {HERE.sharding()}
    assert (HERE.devices, HERE.platform, HERE.one_device) == ((DEVICE,), DEVICE.platform, True)


def test_placements_of_one_device_are_one_place():
    assert len({HERE, SingleDevice(DEVICE)}) == 1
    assert HERE.key == str(DEVICE.id)
    assert placement_of(DEVICE) == placement_of(None) == HERE
    assert placement_of(HERE) is HERE


def test_bytes_are_counted_before_and_after():
    specs = {"a": ArraySpec((4, 6), "bfloat16"), "b": [ArraySpec((3,), "float32"), ArraySpec((8, 2), "int8", True)]}
    assert HERE.nbytes(specs) == 48 + 12 + 16
    assert HERE.nbytes(HERE.put([np.ones(5, np.float32)])) == 20


def test_bytes_in_use_are_those_of_live_arrays_where_the_device_keeps_no_count():
    before = HERE.bytes_in_use()
    kept = HERE.put(np.ones(1000, np.float32))
    assert HERE.bytes_in_use() - before == 4000
    kept.delete()
    assert HERE.bytes_in_use() == before
    assert Several(with_memory(bytes_in_use=5), with_memory(bytes_in_use=9)).bytes_in_use() == 9


def test_the_memory_of_several_devices_is_that_of_the_smallest():
    assert SingleDevice(with_memory(bytes_limit=7)).memory_limit() == 7
    assert SingleDevice(with_memory()).memory_limit() is None
    assert Several(with_memory(bytes_limit=7), with_memory(bytes_limit=5)).memory_limit() == 5


def test_devices_of_another_host_are_not_asked():
    other = SimpleNamespace(process_index=1, client=SimpleNamespace(process_index=lambda: 0))
    mine = with_memory(bytes_limit=5, bytes_in_use=3)
    both = Several(other, mine)
    assert (both.own, both.here, HERE.here) == ((mine,), False, True)
    assert (both.memory_limit(), both.bytes_in_use()) == (5, 3)


@pytest.mark.parametrize("name", ["gemma-4-26b-a4b", "gemma-4-e2b", "gemma-3-1b"])
def test_every_axis_of_a_matrix_has_a_name_that_moves_with_it(name):
    known = {"vocab", "width", "heads", "ffw", "experts", "ple"}
    straight, turned = (dict(walk(abstract(small(name), "float32", Layout(*(first,) * 2)))) for first in (True, False))
    for path, spec in straight.items():
        if len(spec.shape) < 2:
            assert spec.axes == (), path
            continue
        assert (len(spec.axes), set(spec.axes) - known) == (len(spec.shape), set()), path
        other = turned[path]
        sizes = dict(zip(spec.stored_axes, spec.stored_shape, strict=True))
        assert sizes == dict(zip(other.stored_axes, other.stored_shape, strict=True)), path
        assert other.transposed == (other.stored_axes != spec.stored_axes), path
    assert len(kv_cache.AXES) == 4


def test_a_placement_has_to_say_everything():
    with pytest.raises(TypeError, match="abstract"):
        Placement()
