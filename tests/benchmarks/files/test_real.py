from __future__ import annotations

import itertools

import pytest

from benchmarks.files import real
from benchmarks.running.command import PAGE
from benchmarks.running.figures import LLAMA_CPP, Figures, Run
from benchmarks.running.page import REAL, replace_block
from benchmarks.work.conversation import ANSWER, NEW_TOKENS, turns

TALK = {"first": [0.1] * 10, "whole": [0.5] * 10, "tokens": [[1] * ANSWER] * 10}


def figures(*, rival=False, best=(1, 2, 3, 4)):
    round_ = {"prefill": {"256": [0.5], "512": [1.0]}, "decode": 0.02, "tokens": [1], "conversation": TALK}
    facts = {"version": "jax 1", "weight_bytes": 250_000_000, "disk_bytes": 253_000_000, "loss": 3.5, "best": best}
    return Figures({"version": "x"} if rival else facts, [round_ if rival else {**round_, "drafted": TALK}])


def run(**changes):
    engines = {way: {real.CONTENDER.name: figures()} for way in real.WAYS}
    engines["Q8_0"][LLAMA_CPP] = figures(rival=True)
    engines["int4"][real.CONTENDER.name] = figures(best=(1, 2, 9, 4))
    return Run({"processor": "p", "cores": 2, "memory_bytes": 2**30, "system": "s", "python": "3"},
               {"date": "d", "threads": 2, "rounds": 1}, engines | changes)  # fmt: skip


def test_every_way_has_its_row_and_what_failed_its_reason():
    shown = real.markdown(run(int8={real.CONTENDER.name: Figures(problem="it fell over")}))
    for way in real.WAYS:
        assert f"\n| {way} |" in shown
    assert "| int4 | 253 MB | 250 MB | 3.5000 | 75.0% | 512 | 512 | 50.0 | 5.0 s / 5.0 s |" in shown
    assert "it fell over" in shown
    assert "| Q8_0 | 512.0 | 50.0 | 5.0 s | 1.00 × |" in shown


def test_the_page_has_its_place():
    assert "| Q4_K_M |" in replace_block(PAGE.read_text(), real.markdown(run()), REAL)


def test_without_the_file_it_says_what_brings_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(real, "FOLDER", tmp_path)
    assert real.main(["--quick"]) == 1
    assert "scripts/real --fetch" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [0, 1])
def test_turns_of_a_text_are_pieces_of_it_end_to_end(seed):
    text = list(range(3000))
    found = turns(seed, text)
    assert [len(turn) for turn in found] == list(NEW_TOKENS)
    whole = [token for turn in found for token in turn]
    assert all(after == (before + 1) % 3000 for before, after in itertools.pairwise(whole))
    assert turns(seed, text) == found != turns(seed + 1, text)
