"""The benchmark of two sizes in one memory: what it says, and that its steps are what it says."""

from __future__ import annotations

import pytest

from benchmarks.memory import routing
from benchmarks.running.command import PAGE
from langchain_gemma_jax import Choice, Signals

RUNS = {
    "by step": routing.Run(("light", "heavy") * 5, 9.5, 9, 80, 0),
    "default": routing.Run(("light",) + ("heavy",) * 9, 3.0, 2, 90, 0),
    "light": routing.Run(("light",) * 10, 1.0, 1, 30, 0),
    "heavy": routing.Run(("heavy",) * 10, 2.0, 1, 70, 0),
}


def test_what_was_reached_and_missed_is_said():
    text = routing.report(RUNS, 100, 10, 0.5)
    assert "| by step | 9 | 9 | 9.5 | 80% | 0 |" in text
    assert "| default | 1 | 2 | 3.0 | 90% | 0 |" in text
    assert "| 1 in 3.0 s | by step: 9 in 9.5 s | 9.00 × | ≥ 5 × | reached |" in text
    assert "| never | 4 policies | – | never | reached |" in text
    worse = RUNS | {"default": RUNS["by step"], "heavy": routing.Run(("heavy",) * 10, 2.0, 1, 101, 0)}
    fewer, over = routing.rows(worse, 100)
    assert fewer.verdict == "**missed** by 80 %"
    assert (over.ours, over.verdict) == ("heavy", "**missed**")


@pytest.mark.parametrize(("tools", "size"), [(0, "light"), (6, "heavy")])
def test_naive_routing_looks_at_one_step(tools, size):
    assert routing.by_step(Signals(sizes=routing.SIZES, last="light", tools=tools)) == Choice(
        size, "the step by itself"
    )


def test_the_page_has_its_place():
    assert PAGE.read_text().count(routing.BLOCK.begin) == 1
