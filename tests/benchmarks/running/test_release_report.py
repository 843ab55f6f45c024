from __future__ import annotations

import json

import pytest

from benchmarks.running.bars import Row
from benchmarks.running.earlier_run import changes
from benchmarks.running.release_report import ReportError, Results, losses, previous, write_report

FAST = Row("decode", "270M Q8_0", "60 tok/s", "llama.cpp: 40 tok/s", 1.5, "≥ 1.4 ×", "reached")
SLOW = Row(
    "prefill of 512", "270M Q8_0", "300 tok/s", "llama.cpp with AMX: 600 tok/s", 0.5, "≥ 1 ×", "**missed** by 50 %"
)
NEAR = Row("ten turns", "270M Q8_0", "9 s", "ik_llama.cpp: 8 s", 0.9, "≥ 0.8 ×", "reached")
ABSENT = Row("decode", "270M BF16", "–", "–", None, "≥ 1 ×", "not measured: llama.cpp: illegal instruction")


def content(*rows, kind="AMX", made="2026-11-28", **changes):
    machine = {"processor": f"made up ({kind})", "class": kind, "cores": 2, "system": "Linux", "python": "3.11.7"}
    parts = {"files": {"seconds": 1.0, "problem": None, "bars": [vars(row) for row in rows]}}
    whole = {"machine": machine, "made": made, "others": 0.01, "versions": {"ours": "jax 0.9.2"}, "parts": parts}
    return json.loads(json.dumps(whole | changes))


def test_losses_come_first_and_what_was_not_measured_is_one(tmp_path):
    raw = tmp_path / "files.json"
    raw.write_text("{}")
    page = write_report(tmp_path, "0.2.0", content(FAST, NEAR, ABSENT, SLOW), [raw])
    text = page.read_text()
    assert page == tmp_path / "0.2.0" / "README.md"
    assert [row.work for row in losses(Results.of(content(FAST, NEAR, ABSENT, SLOW)))] == [
        "prefill of 512",
        "decode",
        "ten turns",
    ]
    lost, every = text.index("### Losses"), text.index("### Every bar")
    assert lost < text.index("illegal instruction") < every
    assert text.index("| decode | 270M Q8_0 |") > every
    assert "3 of 4 rows; 2 bars were reached." in text
    assert "2026-11-28; others used 0.01 cores meanwhile" in text
    assert "- ours: jax 0.9.2" in text
    assert "No earlier report has this class of processor and this Python." in text
    assert {path.name for path in (page.parent / "AMX-python3.11").iterdir()} == {
        "results.json",
        "bars.svg",
        "files.json",
    }


def test_another_class_of_processor_keeps_its_section_and_its_date(tmp_path):
    write_report(tmp_path, "0.2.0", content(SLOW, kind="AVX2", made="2026-11-01"))
    text = write_report(tmp_path, "0.2.0", content(FAST)).read_text()
    assert text.index("## AMX") < text.index("## AVX2")
    assert "2026-11-01" in text.partition("## AVX2")[2]
    again = write_report(tmp_path, "0.2.0", content(NEAR, made="2026-12-01")).read_text()
    assert "2026-12-01" in again
    assert "2026-11-28" not in again


def test_the_newest_earlier_report_of_the_class_is_compared(tmp_path):
    write_report(tmp_path, "0.2.0", content(FAST, SLOW, ABSENT))
    write_report(tmp_path, "0.9.0", content(Row(**{**vars(FAST), "ratio": 2.0}), SLOW))
    write_report(tmp_path, "0.10.0", content(SLOW, kind="AVX2"))
    better = Row(**{**vars(SLOW), "ratio": 1.1, "verdict": "reached"})
    text = write_report(tmp_path, "1.0.0", content(FAST, better, NEAR)).read_text()
    compared = text.partition("### Compared with 0.9.0 (2026-11-28)")[2]
    assert "- **worse**: decode, 270M Q8_0: 2.00 × before, now 1.50 ×" in compared
    assert "- better: prefill of 512, 270M Q8_0: 0.50 × before, now 1.10 ×" in compared
    assert "- new: ten turns, 270M Q8_0" in compared
    assert previous(tmp_path, "0.2.0") == {}
    assert previous(tmp_path, "1.0.0")["AVX2, Python 3.11"][0] == "0.10.0"


def test_a_bar_that_is_gone_is_told_and_one_that_stays_is_not():
    before = [vars(FAST), vars(SLOW)]
    assert list(changes(before, [FAST, SLOW])) == []
    assert list(changes(before, [FAST])) == ["gone: prefill of 512, 270M Q8_0, beside llama.cpp with AMX: 600 tok/s"]


@pytest.mark.parametrize("version", ["next", "0.2", "../0.2.0", "0.2.0/..", "v0.2.0", ""])
def test_what_is_no_version_is_refused(tmp_path, version):
    with pytest.raises(ReportError, match=r"expected a version such as 0\.2\.0, found"):
        write_report(tmp_path / "reports", version, content(FAST))
    assert not (tmp_path / "reports").exists()


def test_results_of_an_older_suite_are_refused(tmp_path):
    old = content(FAST)
    del old["machine"]["class"]
    with pytest.raises(ReportError, match="run make bench again"):
        write_report(tmp_path, "0.2.0", old)
