from __future__ import annotations

import argparse
import json

import pytest

from benchmarks.running import command
from benchmarks.running.command import parse, publish, status
from benchmarks.running.figures import OURS
from benchmarks.running.page import FORWARD
from benchmarks.work.workload import DTYPES
from tests.benchmarks.running.made_up_run import made_up_run

RIVALS = {"hf": "transformers", "llama": "llama.cpp"}


def options_of(*arguments, **more):
    return parse(arguments, "forward", "What it does.", RIVALS, **more)


def test_options():
    assert options_of().rounds == 3
    assert options_of("--quick").rounds == 1
    assert options_of("--rivals", "llama").rivals == ("llama",)
    assert options_of("--rivals", "none").rivals == ()
    assert set(options_of().rivals) == set(RIVALS)
    assert options_of(dtypes=True).dtypes == options_of().dtypes == DTYPES
    assert options_of("--dtype", "bfloat16", dtypes=True).dtypes == ("bfloat16",)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rivals", "hf,vllm"], "found vllm"),
        (["--rounds", "0"], "found 0"),
        (["--threads", "100000"], "found 100000"),
        (["--round", "x"], "invalid"),
        (["--fast"], "unrecognized"),
        (["--dtype", "bfloat16"], "unrecognized"),  # of a benchmark that has one alone
    ],
)
def test_options_that_are_not_possible_are_refused(arguments, said, capsys):
    with pytest.raises(SystemExit) as caught:
        options_of(*arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def page(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{FORWARD.begin}\nold\n{FORWARD.end}\n")
    monkeypatch.setattr(command, "PAGE", page)
    return page


def test_a_run_is_written_where_it_is_asked_for(tmp_path, page, capsys):
    options = argparse.Namespace(json=tmp_path / "run.json", write_docs=True)
    publish("new", FORWARD, options, run=made_up_run())
    assert capsys.readouterr().out == "new\n"
    assert json.loads(options.json.read_text())["settings"]["threads"] == 2
    assert "\n\nnew\n\n" in page.read_text()


def test_a_run_without_our_engine_is_a_failure(page):
    run = made_up_run()
    run.engines["float32"][OURS].problem = "out of memory"
    assert [status(run, [dtype]) for dtype in ("float32", "bfloat16")] == [1, 0]
    before = page.read_text()
    publish("new", FORWARD, argparse.Namespace(json=None, write_docs=False), run=run)
    assert page.read_text() == before
