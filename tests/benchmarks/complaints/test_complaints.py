"""The measurements of three complaints, and how they are shown."""

from __future__ import annotations

import json

from benchmarks.complaints import complaints
from benchmarks.complaints.complaints_work import RESULT, TOLD, resident_bytes, serve_reader
from benchmarks.running.command import PAGE
from benchmarks.running.figures import LLAMA_CPP, OURS, Figures, Run
from benchmarks.running.page import replace_block
from benchmarks.running.serve import Job


def figures(seconds=(0.3, 0.1, 0.2)):
    facts = {"version": "one", "loaded_bytes": 240_000_000}
    return Figures(facts=facts, rounds=[{"result_s": each, "long_bytes": 290_000_000} for each in seconds])


def run(**engines):
    found = Run(
        machine={"processor": "one", "cores": 2, "memory_bytes": 2**34, "system": "Linux", "python": "3.11"},
        settings={"date": "2026-01-01", "threads": 2, "rounds": 3},
    )
    found.engines[complaints.FILE] = {OURS: figures(), **engines}
    return found


def test_the_table_has_a_row_for_each_and_says_who_could_not_be_measured():
    shown = complaints.markdown(run(**{LLAMA_CPP: Figures(problem="no environment")}))
    assert f"| {OURS} | 240 MB | 0.20 s | 290 MB |" in shown
    assert f"| {LLAMA_CPP} | – | – | no environment |" in shown
    assert f"a tool's result of {RESULT} tokens, after {TOLD:,}" in shown
    assert shown.strip() in replace_block(PAGE.read_text(), shown, complaints.BLOCK)


def test_each_round_reads_a_conversation_then_its_result_then_a_long_context(tmp_path, monkeypatch):
    lengths, held = [], []

    class Counting:
        def __init__(self, job):
            self.facts = {"version": "one"}
            held.append(bytearray(64 << 20))

        def forget(self):
            lengths.append("forget")

        def first(self, context):
            lengths.append(len(context))
            return 0

    found = {}
    monkeypatch.setattr("benchmarks.complaints.complaints_work.serve", lambda start: found.update(start=start))
    text = tmp_path / "text.json"
    text.write_text(json.dumps(list(range(8000))))
    serve_reader(lambda _: None, Counting)
    facts, round_of = found["start"](Job("bfloat16", 2, str(tmp_path), "file", str(text)))
    assert 60e6 < facts["loaded_bytes"] < 90e6, "what was made while loading, and nothing from before"
    lengths.clear()
    answer = round_of()
    assert lengths == ["forget", 2000, 2050, "forget", 8000]
    assert answer["result_s"] < 1
    assert answer["long_bytes"] > 60e6
    assert resident_bytes() > 64e6


def test_without_the_file_it_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(complaints, "FOLDER", tmp_path)
    assert complaints.main(["--quick"]) == 1
    assert "scripts/real --fetch" in capsys.readouterr().err
