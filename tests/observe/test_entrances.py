"""JAX's entrances are watched: for one block, and where they are as they are known."""

from __future__ import annotations

import threading
from contextvars import copy_context

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.observe.jax_code.entrances import Entrances
from langchain_gemma_jax.observe.jax_code.guard import guard

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
