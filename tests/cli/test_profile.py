"""The profiler runs around the requests that are wanted, and stops with the last of them; a script ends as it likes."""

from __future__ import annotations

import threading

import jax
import pytest

from langchain_gemma_jax.cli.command import main
from tests.own_engine import own_engine

SCRIPT = """
import sys, time
from langchain_gemma_jax import engine
from langchain_gemma_jax.engine.base.events import Finished, Submitted, Timings

def request(number):
    engine().events.publish(Submitted(number, "m", "", "", 0.0))
    NOTES.append(f"request {number}")
    times = Timings(0, 0, 0, 0)
    engine().events.publish(Finished("m", "", "", "stop", False, 1, 0, 1, 0, 0, 0, 0, times, number=number))

for number in range(REQUESTS):
    request(number)
    if number == 2:
        STOPPED.wait(20)  # a script that goes on for hours waits for nobody
"""


@pytest.fixture
def notes(monkeypatch, tmp_path):
    """The events, in their order; JAX's profiler only takes notes."""
    import builtins

    found, stopped = [], threading.Event()
    monkeypatch.setattr(jax.profiler, "start_trace", lambda folder: found.append(f"start {folder}"))
    monkeypatch.setattr(jax.profiler, "stop_trace", lambda: (found.append("stop"), stopped.set()))
    for name, value in (("NOTES", found), ("STOPPED", stopped), ("REQUESTS", 5)):
        monkeypatch.setattr(builtins, name, value, raising=False)
    monkeypatch.chdir(tmp_path)
    with own_engine():
        yield found


def test_it_runs_around_those_that_are_wanted(notes, tmp_path, capsys):
    (tmp_path / "agent.py").write_text(SCRIPT + "sys.exit(3)\n")
    assert main(["profile", "--skip", "1", "--requests", "2", "--output", "trace", "agent.py"]) == 3, "the script's own"
    assert notes == ["request 0", "start trace", "request 1", "request 2", "stop", "request 3", "request 4"]
    assert "2 requests are in trace" in capsys.readouterr().out


def test_a_script_may_be_short_fail_or_profile_by_itself(notes, tmp_path, capsys, monkeypatch):
    (tmp_path / "agent.py").write_text(SCRIPT.replace("REQUESTS", "2") + "def f(x):\n    return 1 / x\nf(0)\n")
    assert main(["profile", "--requests", "3", "agent.py", "--its-own"]) == 1
    told = capsys.readouterr().err
    assert "2 of 3 requests were watched" in told
    assert "ZeroDivisionError" in told
    assert 'File "agent.py", line' in told.splitlines()[1], "it begins with the script"
    assert "runpy" not in told
    assert notes[-1] == "stop"

    def taken(_):
        raise RuntimeError("Profile has already been started.")

    monkeypatch.setattr(jax.profiler, "start_trace", taken)
    (tmp_path / "agent.py").write_text(SCRIPT.replace("REQUESTS", "2") + "sys.exit('in words')\n")
    assert main(["profile", "agent.py"]) == 1
    told = capsys.readouterr().err
    assert "in words" in told
    assert "JAX's profiler could not be used: Profile has already been started." in told


def test_what_cannot_be_is_said_before_anything_runs(notes, tmp_path, capsys):
    (tmp_path / "agent.py").write_text("1 / 0")
    assert main(["profile", "--output", "agent.py/x", "agent.py"]) == 2
    assert "--output: expected a folder that can be written to" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["profile", "--skip", "-1", "agent.py"])
    assert "--skip: expected a whole number from 0, found '-1'" in capsys.readouterr().err
    assert notes == []
