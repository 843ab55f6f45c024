"""The knowledge of earlier processes: how long compiling takes on this machine."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.executables.remembered import CompileCosts

FIGURES = {"read": (1.7, 4.2), "pick": (2.1, 2.4), "step": (2.7, 4.6)}  # of benchmarks/figures.md: 18 and 62 layers


def test_what_compiling_takes_is_known_from_the_programs_that_are_kept(tmp_path):
    store = Store(tmp_path / "programs")
    for number in range(3):
        store.put(f"program/ours/read/16/{2**number}", b"code", label="a program", seconds=2.0)
    store.put("program/theirs/step/1/512", b"code", label="a program", seconds=8.0)
    store.put("opening/ours", b"[]", label="what is needed first", seconds=0.0)
    costs = CompileCosts()
    assert costs.estimate("ours", "read", store, 6) == (2.0, True)
    assert costs.estimate("ours", "step", store, 6) == (2.0, True), "of the same model rather than of the same kind"
    assert costs.estimate("new", "step", store, 6) == (8.0, True)
    assert costs.estimate("new", "verify", store, 6) == (3.5, True)


def test_what_this_process_compiled_counts_too():
    costs = CompileCosts()
    assert costs.is_empty
    costs.add("ours", "read", 1.0)
    costs.add("ours", "read", 3.0)
    assert costs.estimate("ours", "read", None, 6) == (2.0, True)
    assert not costs.is_empty


def test_where_nothing_was_compiled_it_takes_what_it_took_elsewhere():
    costs = CompileCosts()
    found = {kind: [costs.estimate("ours", kind, None, layers) for layers in (18, 62)] for kind in FIGURES}
    assert not any(each.measured for both in found.values() for each in both)
    for kind, both in FIGURES.items():
        assert [each.seconds for each in found[kind]] == pytest.approx(both, rel=0.1), kind
    assert costs.estimate("ours", "empty", None, 62).seconds < 0.5
