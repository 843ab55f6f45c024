"""The gate's verdict on counts, and the one on an upgrade of JAX."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import gate
from scripts.gate import KIND, NAME, judged
from scripts.jax_upgrade import NEXT, Looked, reasons, told
from tests.engine import work_counts

ROOT = Path(__file__).parents[1]
COUNTS = {
    "compiles": 6.0,
    f"compiles{NEXT}": 0.0,
    f"programs from the disk{NEXT}": 6.0,
    "bytes to the device": 1000.0,
    "tokens reused": 400.0,
}
GOOD = Looked("1.0", goldens=True, parity=True, counts=COUNTS)


def test_what_changed_is_named_with_what_to_do_and_what_nobody_counted_passes():
    assert judged(COUNTS, COUNTS) == ""
    assert judged(None, COUNTS) == ""
    problem = judged(COUNTS, COUNTS | {"bytes to the device": 1100.0, f"compiles{NEXT}": 1.0})
    assert "bytes to the device: expected 1000 within 3%, found 1100 (+10.0%)" in problem
    assert f"compiles{NEXT}: expected 0 within 3%, found 1 (from none)" in problem
    assert "python scripts/gate.py --commit" in problem


def test_every_jax_that_the_tests_run_with_has_been_counted():
    known = json.loads((ROOT / "tests" / "engine" / "work_counts.json").read_text())
    assert len(known) >= 2
    for version, kinds in known.items():
        counted = kinds[KIND][NAME]
        assert counted[f"compiles{NEXT}"] == 0, version
        assert counted["copies that nobody asked for"] == 0, version
        assert counted["programs"] <= counted["programs at most"], version


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"counts": COUNTS | {"bytes to the device": 900.0, "tokens reused": 500.0}}, None),
        ({"goldens": False}, "goldens: answers differ"),
        ({"parity": False}, "parity: the forward pass differs"),
        ({"parity": None}, None),
        ({"counts": None}, "counts: a conversation fails"),
        ({"counts": COUNTS | {f"compiles{NEXT}": 2.0}}, "cold start: a second process compiles 2 programs"),
        ({"counts": COUNTS | {"bytes to the device": 1050.0}}, "counts: bytes to the device: 1000 before, 1050 now"),
        ({"counts": COUNTS | {"tokens reused": 300.0}}, "counts: tokens reused: 400 before, 300 now"),
    ],
)
def test_an_upgrade_is_go_or_no_with_the_reason(changes, reason):
    new = replace(GOOD, version="2.0", **changes)
    found = reasons(GOOD, new)
    assert len(found) == (reason is not None)
    verdict = ("go: JAX 2.0" if reason is None else "no: JAX 2.0") + " (parity was not compared)" * (new.parity is None)
    assert told(GOOD, new).splitlines()[-1] == verdict
    if reason is not None:
        assert reason in found[0]
        assert reason in told(GOOD, new)


def test_what_fails_with_both_is_told_and_is_no_reason():
    old, new = replace(GOOD, goldens=False), replace(GOOD, version="2.0", goldens=False)
    assert reasons(old, new) == []
    assert "Goldens differ with both" in told(old, new)


@pytest.mark.slow
def test_the_gate_is_passed_here_and_a_change_is_dumped(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gate.py"])
    assert gate.main() == 0
    assert "counts are as they were" in capsys.readouterr().out
    known = {NAME: dict(work_counts.committed(KIND)[NAME]) | {"bytes to the device": 1.0}}
    monkeypatch.setattr(work_counts, "committed", lambda kind: known)
    assert gate.main() == 1
    said = capsys.readouterr().out
    assert "bytes to the device: expected 1" in said
    assert "What XLA made of each program: build/gate" in said
    assert any("step" in path.name for path in gate.DUMP.iterdir())
    assert all(path.name.endswith("after_optimizations.txt") for path in gate.DUMP.iterdir())
