from __future__ import annotations

from contextlib import nullcontext

import pytest

from benchmarks.running import contenders
from benchmarks.running.contenders import Contender, in_turn, measure, rivals_of
from benchmarks.running.process import EngineFailedError
from benchmarks.running.serve import Job

FAKE = "tests.benchmarks.running.fake_engine"


@pytest.fixture(autouse=True)
def _logs_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "FOLDER", tmp_path)


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

        def round(self, seconds):
            asked.append("round")
            raise EngineFailedError("no answer within 180 s")

    monkeypatch.setattr(contenders, "start", lambda contender, job: nullcontext(Failing()))
    found = in_turn([Contender("slow", FAKE)], Job("float32", 1, "unused"), rounds=3)
    assert (asked, found["slow"].problem) == (["round"], "no answer within 180 s")


def test_a_rival_that_is_left_out_says_so():
    theirs = Contender("theirs", FAKE, environment="no-such-environment")
    found = measure([Contender("ours", FAKE), theirs], (), Job("float32", 1, "unused", "good"), rounds=1)
    assert found["ours"].measured
    assert found["theirs"].problem == "left out (--rivals)"
    assert rivals_of([Contender("ours", FAKE), theirs]) == {"no-such-environment": "theirs"}


def test_an_engine_has_as_long_as_it_needs(tmp_path):
    slow = Contender("slow", FAKE, round_seconds=0.5)
    found = in_turn([slow], Job("float32", 1, "unused", "never answers"), rounds=1)
    assert found["slow"].problem == "no answer within 0 s"


def test_what_was_remembered_of_the_machine_is_probed_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(contenders, "ensure_checkpoints", lambda folder: folder)
    remembered = tmp_path / "cache" / "recipe.json"
    remembered.parent.mkdir()
    remembered.write_text("{}")
    assert contenders.prepare() == tmp_path
    assert not remembered.exists()
