"""What earlier processes learned: how long compiling takes on this machine."""

from __future__ import annotations

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.executables.remembered import CompileCosts


def test_what_compiling_takes_is_known_from_the_programs_that_are_kept(tmp_path):
    store = Store(tmp_path / "programs")
    for number in range(3):
        store.put(f"program/ours/read/16/{2**number}", b"code", label="a program", seconds=2.0)
    store.put("program/theirs/step/1/512", b"code", label="a program", seconds=8.0)
    store.put("opening/ours", b"[]", label="what is needed first", seconds=0.0)
    costs = CompileCosts()
    assert costs.estimate("ours", "read", store) == 2.0
    assert costs.estimate("ours", "step", store) == 2.0, "of the same model rather than of the same kind"
    assert costs.estimate("new", "step", store) == 8.0
    assert costs.estimate("new", "verify", store) == 3.5


def test_what_this_process_compiled_counts_too_and_nothing_is_made_up():
    costs = CompileCosts()
    assert costs.estimate("ours", "read", None) is None
    costs.add("ours", "read", 1.0)
    costs.add("ours", "read", 3.0)
    assert costs.estimate("ours", "read", None) == 2.0
