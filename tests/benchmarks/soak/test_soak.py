"""The soak: that what it looks for is found when it is planted, and that a run without it is held."""

from __future__ import annotations

import logging
import os
import random
import re
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.soak import soak
from benchmarks.soak.soak_traffic import Tenant, Traffic, fork
from benchmarks.soak.soak_watch import Findings, Sample, Secrets, growth, slope, verdict, watch
from langchain_gemma_jax.errors import DeadlineError, ForkedError, SchemaError

A, B = Tenant("canary1111"), Tenant("canary2222")
START = Sample(0.0, 500.0, 9, 20)


@pytest.fixture
def findings():
    found = Findings(Secrets({tenant.scope: tenant.secret for tenant in (A, B)}))
    found.compare("a question", "Paris", "Paris")
    return found


def run(minutes=15.0, leak=0.0, seed=3):
    """Return the observations of some minutes, of models that come and go and of a leak of some MiB a minute."""
    rng = random.Random(seed)
    now = [0.0]

    def look(minute):
        swapped = rng.choice([0.0, 40.0])
        late = 300 * (1 - 2**-minute)  # what is compiled and cached at first
        return replace(START, minute=minute, rss=500 + late + swapped + rng.gauss(0, 3) + leak * minute)

    said = []
    samples = watch(minutes, look, said.append, clock=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s))
    assert [round(sample.minute) for sample in said] == list(range(1, int(minutes)))
    return samples


def missed(text):
    return re.findall(r"^MISSED (\w+)", text, re.MULTILINE)


def test_a_slope_is_not_moved_by_outliers():
    points = [(minute / 10, 2 * minute / 10) for minute in range(100)]
    assert slope(points) == pytest.approx(2)
    for at in range(0, 100, 9):
        points[at] = (points[at][0], 1e6)
    assert slope(points) == pytest.approx(2, abs=0.2)
    assert slope([(1, 3)]) == slope([]) == slope([(1, 3), (1, 4)]) == 0


def test_a_run_without_anything_is_held(findings):
    for seed in range(6):
        text, held = verdict(run(seed=seed), START, START, findings, 15)
        assert held, text
        assert "after minute 5 " in text


def test_a_planted_leak_is_reported(findings):
    for seed in range(6):
        text, held = verdict(run(leak=2.5, seed=seed), START, START, findings, 15)
        assert (held, missed(text)) == (False, ["memory"])
    since, grew = growth([replace(START, minute=at / 30, rss=at / 30 * 8) for at in range(180)], 6.0)
    assert (since, grew) == (pytest.approx(3.6), pytest.approx(8)), "a short run has less time to settle"


def test_threads_and_descriptors_that_stay_are_reported(findings):
    samples = run()
    for end, what in ((replace(START, threads=10), "threads"), (replace(START, files=21), "descriptors")):
        assert missed(verdict(samples, START, end, findings, 15)[0]) == [what]
    assert verdict(samples, START, replace(START, threads=3, files=2), findings, 15)[1]


def test_a_changed_answer_is_reported(findings):
    findings.compare("sprout-s question 0", "Paris!", "Paris")
    text, held = verdict(run(), START, START, findings, 15)
    assert (held, missed(text)) == (False, ["greedy"])
    assert "sprout-s question 0: 'Paris!' where a cold run says 'Paris'" in text
    nothing = Findings(findings.secrets)
    assert missed(verdict(run(), START, START, nothing, 15)[0]) == ["greedy"], (
        "a run that compared nothing shows nothing"
    )


def test_planted_secrets_are_found_in_logs_files_errors_and_answers(findings, tmp_path):
    secrets = findings.secrets
    log = tmp_path / "log.txt"
    log.write_bytes(b"nothing " * 1000 + A.secret[:5].encode())
    assert secrets.in_log(log) == []
    with log.open("ab") as opened:
        opened.write(A.secret[5:].encode() + b" and more")
    assert secrets.in_log(log) == [A.scope], "written in two pieces, with a look in between"
    assert secrets.in_log(log) == []
    folder = tmp_path / "cache"
    (folder / "xla").mkdir(parents=True)
    (folder / "xla" / "0.entry").write_bytes(b"\0\xff" + B.secret.encode() + b"\0")
    (folder / f"{A.secret}.json").touch()
    assert [found.partition(":")[0] for found in secrets.in_folder(folder)] == [A.scope, B.scope]
    error = DeadlineError("too late")
    error.__cause__ = ValueError(B.secret)
    for tenant in (A, B):
        findings.failed("late", tenant.scope, error, (DeadlineError,))
    findings.given("an answer", A.scope, f"{A.secret} and {B.secret}")
    assert len(findings.leaks) == 2, "what is one's own is no leak"
    text, held = verdict(run(), START, START, findings, 15)
    assert (held, missed(text)) == (False, ["secrets"])


def test_an_error_that_nobody_asked_for_is_reported(findings):
    findings.failed("late", A.scope, DeadlineError("late"), (DeadlineError,))
    assert verdict(run(), START, START, findings, 15)[1]
    findings.failed("greedy", A.scope, SchemaError("#", "no"), ())
    text, held = verdict(run(), START, START, findings, 15)
    assert (held, missed(text)) == (False, ["errors"])
    assert "greedy: SchemaError" in text
    assert "1 DeadlineError, 1 SchemaError" in findings.line()


@pytest.mark.filterwarnings("ignore")  # of forking beside threads, which is what it does
def test_a_forked_child_that_hangs_or_is_answered_is_reported(findings, monkeypatch):
    def ask(error):
        def asked(*_, **__):
            if error is not None:
                raise error
            return type("Model", (), {"invoke": lambda *_: None})()

        monkeypatch.setattr("benchmarks.soak.soak_traffic.chat", asked)

    ask(ForkedError("as it should be"))
    fork(findings)
    assert (findings.requests, findings.unexpected) == (1, [])
    ask(None)
    fork(findings)
    ask(ValueError("another"))
    fork(findings)
    monkeypatch.setattr("benchmarks.soak.soak_traffic.chat", lambda *_: time.sleep(60))
    fork(findings, seconds=0.2)
    assert [text.rpartition(": ")[2] for text in findings.unexpected] == [
        "it was answered",
        "it got another error than ForkedError",
        "it did not end within 0.2 s",
    ]


def test_everything_that_is_said_is_captured_at_every_level(tmp_path, capfd):
    with soak.log_capture(tmp_path) as (console, logs):
        console.write("to the reader\n")
        os.write(1, b"below it\n")
        os.write(2, b"by a library\n")
        logging.getLogger("some.library").debug("in detail")
        subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
        assert warnings.filters[0][0] == "always"
    sys.stdout.write("afterwards\n")
    said = "".join(log.read_text() for log in logs)
    for text in ("below it", "by a library", "in detail", "by a child"):
        assert text in said
    assert "to the reader" not in said
    assert capfd.readouterr().out == "to the reader\nafterwards\n"


def test_the_traffic_ends_when_it_is_told_to(findings, monkeypatch):
    begun = threading.Event()

    def one(*_):
        begun.set()
        time.sleep(0.001)

    monkeypatch.setattr(Traffic, "one", one)
    monkeypatch.setattr(Traffic, "live_in_loop", lambda self, _seed: self.stop.wait(300))
    traffic = Traffic([A, B], {}, findings)
    before = threading.active_count()
    with soak.running(traffic, 1, findings):
        assert begun.wait()
        assert threading.active_count() == before + soak.THREADS + soak.LOOPS
    assert threading.active_count() == before
    assert findings.unexpected == []


@pytest.mark.parametrize("given", ["0", "-1", "nan", "1e9", "ten"])
def test_minutes_are_checked(given, capsys):
    with pytest.raises(SystemExit):
        soak.main(["--minutes", given])
    assert "minutes" in capsys.readouterr().err


@pytest.mark.slow
def test_a_short_soak_compares_answers_and_finds_no_words_of_tenants():
    program = Path(soak.__file__)
    done = subprocess.run(
        [sys.executable, str(program), "--minutes", "0.3"], capture_output=True, text=True, check=False
    )
    assert "secrets where they must not be: 0" in done.stdout, done.stdout + done.stderr
    assert "greedy answers unlike those of a cold run: 0 of" in done.stdout
    assert "held   errors that nobody asked for: 0" in done.stdout
