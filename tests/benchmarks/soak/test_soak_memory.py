"""Parts of memory: each is named where it was taken, and together they are all of it."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.soak.soak_memory import memory_parts

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux says it")
MIB = 2**20
REPORT = SimpleNamespace(models=[SimpleNamespace(weights=3 * MIB)], kv_bytes=2 * MIB, host_kv_bytes=MIB)


def test_memory_that_is_taken_is_in_one_of_the_parts():
    gc.collect()
    before = memory_parts(REPORT)
    array = np.ones(64 * MIB, np.uint8)
    objects = [str(number) * 10 for number in range(200_000)]
    after = memory_parts(REPORT)
    assert after.allocated - before.allocated > 60, "of numpy, from glibc"
    assert after.python > before.python + 5, "of Python's own"
    assert (after.weights, after.conversations, after.parked) == (3, 2, 1)
    del array
    assert memory_parts(REPORT).allocated < after.allocated - 60
    parts = (after.files, after.code, after.allocated, after.free, after.python, after.rest)
    assert sum(parts) == pytest.approx(after.resident)
    assert all(name in str(after) for name in ("weights 3", "conversations 2", "parked 1", "the rest"))
    assert len(objects) == 200_000
