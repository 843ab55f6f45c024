from __future__ import annotations

from benchmarks.running.bars import Row
from benchmarks.running.release_report import Results
from benchmarks.running.who_wins import WORKS, who_wins

ROWS = [
    Row("decode", "270M Q8_0", "60 tok/s", "ik_llama.cpp: 40 tok/s", 1.5, "≥ 1.2 ×", "reached"),
    Row("decode", "270M Q4_0", "60 tok/s", "llama.cpp with AMX: 80 tok/s", 0.75, "≥ 1.2 ×", "**missed** by 37 %"),
    Row("ten turns", "270M Q8_0", "–", "–", None, "≥ 1.3 ×", "not measured: ours: it ended"),
    Row("resident, of the file", "270M Q8_0", "1 MB", "the file: 1 MB", 1.0, "≤ 1.05 ×", "reached"),
]


def results(python="3.11.7", kind="AMX", rows=ROWS):
    machine = {"processor": "made up", "cores": 2, "system": "Linux", "python": python}
    return Results(kind, machine, "2026-11-28", 0.0, {}, {"files": rows}, {})


def test_wins_are_bold_losses_are_not_and_the_rival_is_named():
    lines = who_wins([results()]).splitlines()
    assert lines[0] == "| on AMX, Python 3.11, 2026-11-28 | 270M Q8_0 | 270M Q4_0 |"
    assert lines[2] == f"| {WORKS['decode']} | **1.50 ×** ik_llama.cpp | 0.75 × llama.cpp with AMX |"
    assert lines[-1] == f"| {WORKS['ten turns']} | – | – |", "what was not measured is no win"
    assert not any("resident" in line for line in lines)


def test_each_class_and_python_has_a_table_and_one_without_files_has_none():
    text = who_wins([results(), results("3.13.1"), results(kind="AVX2"), results("3.12.0", rows=[])])
    assert text.count("| on ") == 3
    for name in ("AMX, Python 3.11", "AMX, Python 3.13", "AVX2, Python 3.11"):
        assert f"| on {name}," in text
    assert "3.12" not in text
