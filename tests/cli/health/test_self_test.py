"""A second process finds what a first one compiled, or the doctor says why not."""

from __future__ import annotations

import sys

import pytest

from langchain_gemma_jax.cli.health import self_test
from langchain_gemma_jax.cli.health.findings import Verdict

WELL = {
    "first_answer_s": 1.0, "tokens_per_s": 100.0, "compiles": 0, "cache_hits": 9, "cache_misses": 0, "trips": 0,
    "valid_call": True, "same_answer": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(tmp_path / "programs"))
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("change", "verdict", "words"),
    [
        ({}, Verdict.OK, "first answer after 1.0 s, 100 tokens/s"),
        ({"valid_call": False}, Verdict.BAD, "the tool call it had to make is not valid"),
        ({"same_answer": False}, Verdict.BAD, "got two answers at temperature 0"),
        ({"trips": 2}, Verdict.WARN, "guards tripped 2 times"),
    ],
)
def test_what_the_first_process_says(change, verdict, words):
    found = self_test._first(WELL | change)
    assert found.verdict is verdict
    assert words in found.found
    assert bool(found.advice) is (verdict is not Verdict.OK)


@pytest.mark.parametrize(
    ("change", "seconds", "verdict", "words"),
    [
        ({}, 5.0, Verdict.OK, "9 programs came from the disk, 0 were compiled"),
        ({"compiles": 9, "cache_hits": 0}, 5.0, Verdict.BAD, "9 were compiled"),
        ({"compiles": 1}, 5.0, Verdict.WARN, "1 were compiled"),
        ({}, 21.0, Verdict.WARN, "21.0 s in all"),
    ],
)
def test_what_the_second_process_says(change, seconds, verdict, words):
    found = self_test._second(WELL | {"compiles": 9}, WELL | change, 15.0, seconds)
    assert found.verdict is verdict
    assert words in found.found
    assert bool(found.advice) is (verdict is not Verdict.OK)


def test_a_cache_that_is_off_is_a_choice_and_costs_time(monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", "off")
    found = self_test._second(WELL, WELL | {"compiles": 9, "cache_hits": 0}, 15.0, 15.0)
    assert found.verdict is Verdict.WARN
    assert "GEMMA_JAX_COMPILE_CACHE=on" in found.advice


def test_a_process_that_does_not_answer_is_a_finding(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (found,) = self_test.self_test()
    assert (found.verdict, found.found) == (Verdict.BAD, "the process ended without an answer: status 1")
    assert "gemma-jax run hello" in found.advice
