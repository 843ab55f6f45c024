"""JAX's entrances are watched: for one block, and where they are as they are known."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextvars import copy_context
from pathlib import Path

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import GuardError
from langchain_gemma_jax.observe.jax_code.entrances import Entrances
from langchain_gemma_jax.observe.jax_code.guard import LISTED, guard

ROOT = Path(__file__).parents[2]
ONES = jax.device_put(np.ones(4, np.float32))


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """No guard that a test does not name does anything."""
    monkeypatch.setattr(process, "_settings", Settings(guards="off"))


def fresh():
    return jax.jit(lambda x: x * 2 + 1)


def test_single_numbers_are_part_of_a_call():
    with guard(transfer="raise") as g:
        (ONES + 1) * 2.5
        ONES[0].block_until_ready()
    assert g.report().trips_by_guard == {}


def test_what_other_threads_do_is_theirs_unless_they_run_in_the_context():
    step, x = jax.jit(lambda x: x - 1), np.ones(4, np.float32)
    step(x)
    with guard(transfer="callback", on_trip=lambda _: None) as g:
        other = threading.Thread(target=step, args=(x,))
        other.start()
        other.join()
        assert g.report().copies == 0
        ours = threading.Thread(target=copy_context().run, args=(step, x))
        ours.start()
        ours.join()
    assert g.report().trips_by_guard == {"transfer": 1}
    with guard(recompile="raise", compiles=0) as g:
        other = threading.Thread(target=fresh(), args=(x,))
        other.start()
        other.join()
    assert g.report().compiles == 0


def test_where_jax_is_built_otherwise_that_is_said(monkeypatch):
    def fail(_):
        raise AttributeError("no such name")

    monkeypatch.setattr(Entrances, "_patch", fail)
    with guard(transfer="raise") as g:
        fresh()(np.ones(4, np.float32))
    assert "built otherwise" in g.report().not_watched["transfer"]
    assert "not watched" in str(g.report())


def test_a_python_list_is_told_of_and_a_few_numbers_are_not():
    step = jax.jit(sum)
    for numbers in ([1] * 64, [1.5] * 64, [1, 2.5, 3]):
        step(numbers)
        with guard(transfer="callback", on_trip=lambda _: None) as g:
            for _ in range(3):
                step(numbers)
        report = g.report()
        listed = len(numbers) >= LISTED
        assert report.trips_by_guard == ({"transfer": 3} if listed else {}), numbers
        assert report.implicit_copies == (3 * 64 if listed else 0)
        assert report.implicit_bytes == (3 * 64 * 4 if listed else 0)
        if listed:
            assert "64 single numbers were handed to one compiled function, as a Python list" in report.trips[0].reason
            assert "test_entrances.py:" in report.trips[0].site
    with pytest.raises(GuardError, match="another length is another program"), guard(transfer="raise"):
        step([1] * 64)


TWO_DEVICES = """
import jax, numpy as np
from langchain_gemma_jax import configure, guard

configure(guards="off")
here, there = jax.devices()
step = jax.jit(lambda a, b: a + b)
apart = jax.device_put(np.ones(2**20, np.float32), there)
follows = jax.numpy.ones(2**20, np.float32)  # put nowhere, so it goes where the others are
step(apart, follows)
with guard(transfer="callback", on_trip=lambda _: None) as g:
    for _ in range(3):
        step(apart, follows)
        step(apart, apart)
        jax.device_put(follows, there)
        apart[0].block_until_ready()
found = g.report()
assert found.trips_by_guard == {"transfer": 3}, found
assert found.implicit_bytes == 3 * 2**22, found
assert "moved from one device to another" in found.trips[0].reason
assert found.trips[0].site.startswith("apart.py:"), found.trips[0].site
print(found.device_placement)
"""


@pytest.mark.long
def test_an_array_that_moves_from_device_to_device_is_told_of_with_its_bytes(tmp_path):
    (tmp_path / "apart.py").write_text(TWO_DEVICES)
    two = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "apart.py")]
    done = subprocess.run(command, env=os.environ | two, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 implicit copies, 12.0 MiB in total\n"
