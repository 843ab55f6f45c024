from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks import forward
from benchmarks.forward import RIVALS, Contender, in_turn, parse
from benchmarks.process import EngineFailedError
from benchmarks.serve import Job

ROOT = Path(__file__).parents[2]
FAKE = "tests.benchmarks.fake_engine"


@pytest.fixture(autouse=True)
def _logs_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(forward, "FOLDER", tmp_path)


def test_engines_take_turns():
    found = in_turn([Contender("a", FAKE), Contender("b", FAKE)], Job("float32", 1, "unused", "good"), rounds=2)
    assert {name: len(figures.rounds) for name, figures in found.items()} == {"a": 2, "b": 2}
    assert found["a"].facts == {"version": "fake float32"}
    assert found["a"].decode() == [pytest.approx(10), pytest.approx(5)]


def test_an_engine_that_fails_does_not_stop_the_others():
    broken = Contender("broken", "tests.benchmarks.no_such_module")
    absent = Contender("absent", FAKE, environment="no-such-environment")
    found = in_turn([broken, absent, Contender("good", FAKE)], Job("float32", 1, "unused", "good"), rounds=1)
    assert "No module named" in found["broken"].problem
    assert found["absent"].problem == ".envs/no-such-environment is absent (--setup makes it)"
    assert found["good"].measured


def test_an_engine_that_fails_later_is_asked_no_more():
    found = in_turn([Contender("dies", FAKE)], Job("float32", 1, "unused", "fails in round 2"), rounds=3)
    assert len(found["dies"].rounds) == 1
    assert not found["dies"].measured
    assert "out of memory" in found["dies"].problem


def test_a_process_that_failed_is_not_asked_again(monkeypatch):
    asked = []

    class Failing:
        facts = None

        def round(self):
            asked.append("round")
            raise EngineFailedError("no answer within 180 s")

    monkeypatch.setattr(forward, "start", lambda contender, job: nullcontext(Failing()))
    found = in_turn([Contender("slow", FAKE)], Job("float32", 1, "unused"), rounds=3)
    assert (asked, found["slow"].problem) == (["round"], "no answer within 180 s")


def test_options():
    assert parse([]).rounds == 3
    assert parse(["--quick"]).rounds == 1
    assert parse(["--rivals", "hf,llama"]).rivals == ("hf", "llama")
    assert parse(["--rivals", "none"]).rivals == ()
    assert set(parse([]).rivals) == set(RIVALS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rivals", "hf,vllm"], "found vllm"),
        (["--rounds", "0"], "found 0"),
        (["--threads", "100000"], "found 100000"),
        (["--round", "x"], "invalid"),
        (["--fast"], "unrecognized"),
    ],
)
def test_options_that_are_not_possible_are_refused(arguments, said, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_it_runs_by_path_from_anywhere(tmp_path):
    command = [sys.executable, ROOT / "benchmarks" / "forward.py", "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert "--rivals" in result.stdout


def test_there_is_a_recipe_for_the_environment_of_each_rival():
    recipes = (ROOT / "scripts" / "reference_env").read_text()
    assert [name for name in RIVALS if f"\n{name})\n" not in recipes] == []
    assert f"for name in {' '.join(RIVALS)};" in (ROOT / "scripts" / "rivals").read_text()
