"""The table of models of other families: every way has a row, and a bar that is missed says so."""

from __future__ import annotations

from benchmarks.families import families
from benchmarks.running.command import PAGE
from benchmarks.running.figures import Figures, Run
from benchmarks.running.page import FAMILIES, replace_block

MACHINE = {"processor": "one", "cores": 2, "memory_bytes": 2**34, "system": "Linux", "python": "3.11.0"}


def a_round(seconds, **more):
    speeds = {"prefill": {"256": [0.5], "512": [1.0]}, "decode": 0.05, "tokens": [1, 2, 3]}
    return speeds | {"conversation": {"whole": [seconds / 10] * 10}} | more


def run(through=10.0, later=0):
    ours = {"version": "jax 1", "programs": 9, "program_bound": 12, "compile_seconds": 30.0}
    alone = {"prefill": {"256": [2.0], "512": [4.0]}, "decode": 1.0, "tokens": [1, 2, 4]}
    engines = {
        families.TORCH: Figures({"version": "torch 1"}, [a_round(60.0)]),
        families.COMPILED: Figures(problem="it has no compiler"),
        families.EAGER: Figures({}, [alone]),
        families.THROUGH: Figures(ours, [a_round(through, compiles=later)]),
        families.OWN: Figures(ours, [a_round(5.0, compiles=0)]),
    }
    settings = {"date": "2026-01-01", "threads": 2, "rounds": 1, "rivals": []}
    return Run(MACHINE, settings, {families.DTYPE: engines})


def test_every_way_has_a_row_and_bars_have_verdicts():
    text = families.markdown(run())
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    assert set(families.NAMES) < set(rows)
    assert "it has no compiler" in rows[families.COMPILED]
    assert "| 1.0 | – | – | 2 of 3 |" in rows[families.EAGER]
    assert "| 20.0 | 10.0 s | 6.0 × | 3 of 3 |" in rows[families.THROUGH]
    assert "6.0 ×, bar 3 ×: reached" in text
    assert text.count("9 programs of at most 12, compiled in 30 s before the rounds, 0 in them: reached") == 2
    missed = families.markdown(run(through=30.0, later=2))
    assert "2.0 ×, bar 3 ×: missed" in missed
    assert "2 in them: missed" in missed
    assert families.THROUGH in replace_block(PAGE.read_text(), text, FAMILIES)
