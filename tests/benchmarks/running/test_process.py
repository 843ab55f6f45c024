from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.running.process import EngineFailedError, EngineProcess, environment
from benchmarks.running.serve import Job

MODULE = "tests.benchmarks.running.fake_engine"


def job(model: str) -> Job:
    return Job("float32", threads=1, folder="unused", model=model)


@pytest.fixture
def start(tmp_path):
    return lambda model, seconds=20.0: EngineProcess(
        Path(sys.executable), MODULE, job(model), tmp_path / "log", start_seconds=seconds
    )


def test_rounds_are_answered_whatever_libraries_print(start):
    with start("good") as engine:
        assert engine.facts == {"version": "fake float32"}
        assert [engine.round()["tokens"] for _ in range(2)] == [[1, 1], [1, 2]]


def test_a_process_is_gone_when_its_block_ends(start):
    with start("good") as engine:
        pass
    assert engine._process.returncode is not None


def test_an_engine_that_cannot_start_leaves_its_last_words(start):
    with pytest.raises(EngineFailedError, match="no such instruction"):
        start("cannot start")


def test_an_engine_that_dies_leaves_its_last_words(start):
    with start("fails in round 2") as engine:
        engine.round()
        with pytest.raises(EngineFailedError, match="out of memory"):
            engine.round()
        with pytest.raises(EngineFailedError, match="out of memory"):  # and asking again is no other error
            engine.round()


@pytest.mark.long
def test_an_engine_that_hangs_at_the_start_is_ended(start):
    with pytest.raises(EngineFailedError, match="no answer within 1 s"):
        start("never starts", seconds=1.0)


@pytest.mark.long
def test_an_engine_that_hangs_in_a_round_is_ended(start):
    with start("never answers") as engine:
        with pytest.raises(EngineFailedError, match="no answer within 1 s"):
            engine.round(seconds=1.0)
        assert engine._process.wait() != 0


def test_settings_of_the_caller_do_not_reach_an_engine():
    caller = {"PATH": "/bin", "XLA_FLAGS": "--xla_x", "JAX_PLATFORMS": "cuda", "OMP_NUM_THREADS": "7"}
    found = environment(caller, Job("float32", threads=2, folder="f"))
    assert found["PATH"] == "/bin"
    assert "XLA_FLAGS" not in found
    assert (found["JAX_PLATFORMS"], found["OMP_NUM_THREADS"]) == ("cpu", "2")


def test_compilation_is_cached_on_disk_only_for_a_job_that_keeps_programs():
    found = environment({"JAX_COMPILATION_CACHE_DIR": "/cache"}, Job("float32", threads=2, folder="f"))
    assert "JAX_COMPILATION_CACHE_DIR" not in found
    assert found["JAX_ENABLE_COMPILATION_CACHE"] == "false"
    found = environment({}, Job("float32", threads=2, folder="f", keeps_programs=True))
    assert found["JAX_ENABLE_COMPILATION_CACHE"] == "true"
