"""A gate for what the engine costs: counts, each within 3 % of what is committed.

``python scripts/work_counts.py`` commits new ones, for the JAX of the Python that runs it.
"""

from __future__ import annotations

import os

import jax
import pytest

from langchain_gemma_jax.kernels.products import kernels_run
from tests.engine import work_counts
from tests.engine.work_counts import PROGRAMS, RECIPES, Change, changes, commit, compiled, conversation, traced

COMMIT = os.environ.get("COMMIT_WORK_COUNTS") == "1"

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="the committed counts are those of CPUs")
by_kernels = pytest.mark.skipif(not kernels_run(), reason="the kernels do not run here")
RECIPES_HERE = [pytest.param(name, marks=by_kernels if "kernels" in name else ()) for name in RECIPES]


@pytest.fixture
def optimized():
    """XLA as users have it."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def gate(kind, name, counts):
    """Compare with the committed counts, or commit these."""
    if COMMIT:
        commit(kind, name, counts)
    known = work_counts.committed(kind)
    if known is None:
        pytest.skip(f"nobody has counted with JAX {jax.__version__}: {work_counts.REFRESH} does")
    found = changes(known.get(name, {}), counts)
    assert not found, work_counts.explained(found)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("recipe", RECIPES_HERE)
def test_a_dispatch_asks_for_no_more_than_it_did(recipe, program):
    gate("traced", f"{recipe}, {program}", traced(recipe, program))


@pytest.mark.long
@by_kernels
@pytest.mark.parametrize("program", ["a chunk of 16", "a step of 1", "a step of 8"])
def test_xla_makes_no_more_of_it_than_it_did(optimized, program):
    gate("compiled", f"int8 by kernels, {program}", compiled("int8 by kernels", program))


@pytest.mark.long
def test_a_conversation_costs_no_more_than_it_did(engine_of, tiny_model):
    gate("conversation", "three turns", conversation(engine_of, tiny_model))


# And the gate itself, shown something bad.


def test_what_is_within_the_slack_passes_and_the_rest_is_named():
    before = {"operations": 100.0, "kernel calls": 12.0, "copies": 0.0}
    assert changes(before, {"operations": 103.0, "kernel calls": 12.0, "copies": 0.0}) == []
    assert changes(before, {"operations": 104.0, "kernel calls": 13.0, "copies": 1.0}) == [
        Change("copies", 0.0, 1.0),
        Change("kernel calls", 12.0, 13.0),
        Change("operations", 100.0, 104.0),
    ]
    assert changes(before, {"operations": 100.0, "copies": 0.0, "programs": 1.0}) == [
        Change("kernel calls", 12.0, None),
        Change("programs", None, 1.0),
    ]


def test_more_work_and_a_gain_are_told_with_what_to_do():
    more = work_counts.explained([Change("operations", 100.0, 110.0), Change("copies", 0.0, 1.0)])
    assert "operations: expected 100 within 3%, found 110 (+10.0%)" in more
    assert "copies: expected 0 within 3%, found 1 (from none)" in more
    assert "find what added the work" in more
    assert f"To keep this, run {work_counts.REFRESH}" in work_counts.explained([Change("operations", 100.0, 90.0)])


def test_forty_operations_more_are_seen(monkeypatch):
    from langchain_gemma_jax.engine.device import programs

    usual = programs._forward

    def with_more(*args, **kwargs):
        hidden, pool = usual(*args, **kwargs)
        for _ in range(40):
            hidden = hidden + 1
        return hidden, pool

    before = traced("dense by XLA", "a chunk of 16")
    monkeypatch.setattr(programs, "_forward", with_more)
    (change,) = changes(before, traced("dense by XLA", "a chunk of 16"))
    assert (change.name, change.worse) == ("operations", True)
