"""The content of pages, to the host and back: both doors give and take the same bytes, and touch no other page."""

from __future__ import annotations

import random
import sys

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import MOVING
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_door import MappedPages, ProgrammedPages, is_mapped, page_door
from langchain_gemma_jax.engine.device.programs import PAGES_AT_ONCE, Programs
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.device.made_up_pool import by_kind, filled, same, shape_of
from tests.engine.tiny import CONFIGS

MANY = PageCounts(whole=2 * PAGES_AT_ONCE + 5, local=PAGES_AT_ONCE + 4, slots=8)


def doors(shape):
    """Return both doors of a model."""
    where = SingleDevice(jax.devices()[0])
    programs = Programs(shape, where)
    device = DeviceAccess(where, Metrics(), Guards(lambda: Settings(guards="raise")), [(k,) for k in MOVING], lambda: 0)

    def run(key, *args):
        return device.run(key, programs.of(key), *args)

    return {"mapped": MappedPages(shape), "programmed": ProgrammedPages(shape, device, run)}


@pytest.mark.parametrize(("name", "dtype"), [(name, "float32") for name in CONFIGS] + [("shared KV", "bfloat16")])
def test_both_doors_give_and_take_the_same_bytes(name, dtype, strict_transfers):
    shape = shape_of(name, dtype)
    for door in doors(shape).values():
        rng = random.Random(name)
        for local, count in ((False, MANY.whole), (True, MANY.local)):
            for number in (1, 3, PAGES_AT_ONCE, count - 1):
                with jax.transfer_guard("allow"):
                    pool, other = filled(shape, MANY), filled(shape, MANY, first=500_000)
                    wanted, new = by_kind(shape, pool), by_kind(shape, other)
                pages = rng.sample(range(1, count), number)
                contents = door.read(pool, pages, local=local)
                assert [len(content) for content in contents] == [len(wanted[local])] * number
                for page, content in zip(pages, contents, strict=True):
                    for part, array in zip(content, wanted[local], strict=True):
                        assert part.dtype == array.dtype
                        assert part.tobytes() == array[page].tobytes()
                pool = door.write(pool, pages, door.read(other, pages, local=local), local=local)
                for array, theirs in zip(wanted[local], new[local], strict=True):
                    array[pages] = theirs[pages]
                found = by_kind(shape, pool)
                assert same(_without_nobody(found), _without_nobody(wanted))
                # What was read before is a copy.
                for page, content in zip(pages, contents, strict=True):
                    if content:
                        assert content[0].tobytes() != wanted[local][0][page].tobytes()
                source, target = rng.sample(range(1, count), 2)
                pool = door.copy(pool, source, target, local=local)
                for array in wanted[local]:
                    array[target] = array[source]
                assert same(_without_nobody(by_kind(shape, pool)), _without_nobody(wanted))


def _without_nobody(kinds):
    return {local: [array[1:] for array in arrays] for local, arrays in kinds.items()}


def test_nothing_is_read_or_written_where_no_page_is_named():
    shape = shape_of("local and global")
    for door in doors(shape).values():
        pool = filled(shape, MANY)
        assert door.read(pool, [], local=True) == []
        assert door.write(pool, [], [], local=True) is pool


def test_programs_write_in_place_after_the_host_has_looked():
    """A view that JAX knows of would have the next program copy the whole pool."""
    shape = shape_of("local and global")
    door, other = doors(shape).values()
    pool = filled(shape, MANY)
    at = [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(pool)]
    contents = door.read(pool, [1, 2], local=False)
    pool = door.write(pool, [3, 4], contents, local=False)
    pool = other.copy(pool, 3, 5, local=False)
    assert [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(pool)] == at
    assert door.read(pool, [5], local=False)[0][0].tobytes() == contents[0][0].tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is memory given back")
def test_the_memory_of_free_pages_goes_back_to_the_system_and_no_other():
    shape = shape_of("by kernels")  # pages of 2 KiB
    door = doors(shape)["mapped"]
    counts = PageCounts(whole=100, local=90, slots=8)
    pool = filled(shape, counts, first=1)
    wanted = by_kind(shape, pool)
    free = [*range(7, 40), 50, *range(60, 99)]
    door.give_back(pool, random.Random(1).sample(free, len(free)), local=False)
    found = by_kind(shape, pool)
    gone = 0
    for array, before in zip(found[False], wanted[False], strict=True):
        kept = [page for page in range(counts.whole) if page not in free]
        np.testing.assert_array_equal(array[kept], before[kept])
        gone += int((array[free] != before[free]).sum()) * array.itemsize
        assert set(np.unique(array[free][array[free] != before[free]])) <= {0}, "it reads as zeros"
    whole = sum(array.nbytes for array in wanted[False]) // counts.whole
    assert gone > 0.8 * len(free) * whole
    for array, before in zip(found[True], wanted[True], strict=True):
        np.testing.assert_array_equal(array, before)


def test_a_pool_is_mapped_where_it_lies_in_this_process_alone():
    class Elsewhere(SingleDevice):
        here = False

    class Card(SingleDevice):
        platform = "gpu"

    device, shape = jax.devices()[0], shape_of("all global")
    assert [is_mapped(kind(device)) for kind in (SingleDevice, Elsewhere, Card)] == [True, False, False]
    for kind, door in ((SingleDevice, MappedPages), (Card, ProgrammedPages)):
        access = DeviceAccess(kind(device), Metrics(), Guards(Settings), [], lambda: 0)
        assert type(page_door(shape, access, lambda *_: None)) is door
