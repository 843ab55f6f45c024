from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import suite
from benchmarks.running.bars import Row
from benchmarks.running.suite_plot import draw, share_of
from benchmarks.suite import PARTS, Found, Part, as_json, regressions, report

FAST = Row("decode", "270M Q8_0", "60 tok/s", "llama.cpp: 40 tok/s", 1.5, "≥ 1.4 ×", "reached")
COLD = Row("first token", "sprout-m", "2 s", "imports: 1 s", 2.0, "≤ 1.5 ×", "**missed** by 33 %")
BYTES = Row("copied", "bfloat16", "0 KiB", "–", None, "≤ 64 KiB", "reached")


def found(*rows, problem=None):
    return {"engine": Found(rows, 12.0, problem)}


def test_the_table_has_every_bar_and_says_what_gave_none():
    shown = report(
        {**found(FAST, COLD, BYTES), "memory": Found((), 3.0, "it failed: memory.txt has what it said")}, 72, 0.5
    )
    assert shown.startswith("2 of 3 bars reached.")
    assert all(f"| {row.work} | {row.dtype} | {row.ours} |" in shown for row in (FAST, COLD, BYTES))
    assert "1.2 minutes: engine 12 s, memory 3 s. Others used 0.50 cores meanwhile." in shown
    assert "- memory: it failed: memory.txt has what it said" in shown
    assert "made up" in suite.replace_block(suite.PAGE.read_text(), "made up", suite.WINS)


@pytest.mark.parametrize(
    ("changed", "worse"),
    [
        ({"ratio": 1.40}, False),  # within what rounds differ by
        ({"ratio": 1.30}, True),
        ({"ratio": 9.0}, False),
        ({"ratio": None, "verdict": "not measured: it fell over"}, False),
        ({"ratio": None, "verdict": "**missed** by 3 %"}, True),
    ],
)
def test_what_became_worse_is_told(changed, worse):
    before = json.loads(json.dumps(as_json(found(FAST, COLD, BYTES), 0.0)))
    now = Row(**{**vars(FAST), **changed})
    assert bool(regressions(before, found(now, COLD, BYTES))) == worse
    assert regressions(before, found(Row(**{**vars(COLD), "ratio": 2.1}), BYTES)) == []
    told = regressions(before, found(Row(**{**vars(COLD), "ratio": 3.0})))
    assert told == ["**worse**: first token, sprout-m: 2.00 × before, now 3.00 ×"]
    assert regressions(before, found(Row(**{**vars(BYTES), "ours": "80 KiB", "verdict": "**missed** by 25 %"}))) == [
        "**worse**: copied, bfloat16: 0 KiB before, now 80 KiB"
    ]


def test_bars_of_one_work_are_told_apart_by_their_rival_and_seconds_are_compared_by_their_verdict():
    of_memory = Row("decode", "270M Q8_0", "60 tok/s", "bandwidth: 60 tok/s", 1.0, "≥ 0.8 ×", "reached")
    before = json.loads(json.dumps(as_json(found(of_memory, FAST), 0.0)))
    assert regressions(before, found(of_memory, FAST)) == []
    assert regressions(before, found(of_memory, Row(**{**vars(FAST), "ratio": 1.0}))) == [
        "**worse**: decode, 270M Q8_0: 1.50 × before, now 1.00 ×"
    ]
    compiling = Row("compile", "bfloat16", "5 s", "theirs: 5 s", 1.0, "≤ 6 s", "reached")
    before = json.loads(json.dumps(as_json(found(compiling), 0.0)))
    assert regressions(before, found(Row(**{**vars(compiling), "ratio": 2.0}))) == []
    assert regressions(before, found(Row(**{**vars(compiling), "verdict": "**missed** by 2 %"}))) != []


def test_the_picture_has_a_bar_for_each_ratio_green_where_it_is_reached():
    drawn = ET.fromstring(draw([("a & b", FAST), ("c", COLD), ("d", BYTES)]))
    colors = [each.get("fill") for each in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(colors) == 2
    assert colors[0] != colors[1]
    assert share_of(FAST) == pytest.approx(1.5 / 1.4)
    assert share_of(COLD) == pytest.approx(0.75)
    assert share_of(BYTES) is None


@pytest.fixture
def program(tmp_path, monkeypatch):
    """The folder of the results, and what makes a benchmark of a few lines."""
    monkeypatch.setattr(suite, "FOLDER", tmp_path)
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    (tmp_path / "benchmarks").mkdir()

    def make(text):
        (tmp_path / "benchmarks" / "made.py").write_text(f"import json, sys, time\n{text}\n")
        return suite.run("made", Part("made.py", ("usual",), ("quick",)), size="quick")

    return make


def test_a_benchmark_that_fails_or_hangs_is_a_problem_and_no_end(program, monkeypatch):
    bars = json.dumps({"bars": [vars(FAST)]})
    given = program(
        f"assert sys.argv[1:3] == ['quick', '--json'], sys.argv\nopen(sys.argv[3], 'w').write({bars!r})\nsys.exit(1)"
    )
    assert given.rows == (FAST,)
    assert given.problem is None  # its status only says that a bar was missed
    assert "it failed: suite/made.txt" in program("sys.exit('it fell over')").problem
    monkeypatch.setattr(suite, "LONGEST_S", 0.5)
    assert "it was ended after 0 seconds" in program("time.sleep(60)").problem


@pytest.mark.parametrize(
    "arguments",
    [
        ["--only", "engine,speed"],
        ["--quick", "--only", "forward"],
        ["--quick", "--full"],
        ["--compare", "gone.json"],
        ["--report", "next"],
    ],
)
def test_what_is_not_possible_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        suite.main(arguments)
    assert caught.value.code == 2
    assert re.search("expected .*, found|not allowed with argument", capsys.readouterr().err)


def test_every_part_is_a_program_that_a_usual_run_and_a_full_one_have():
    for part in PARTS.values():
        assert (Path(suite.__file__).parent / part.program).exists()
        assert part.options("full")
        assert part.options("usual") == part.usual
        assert part.options("quick") == part.quick
    assert {name for name, part in PARTS.items() if part.options("quick")} < set(PARTS)
