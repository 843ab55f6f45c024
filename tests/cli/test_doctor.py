"""The doctor: what is wrong gets a verdict and something to do; a second process really finds what a first compiled."""

from __future__ import annotations

import json
import resource

import jax
import pytest

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.cli.health import machine, self_test
from langchain_gemma_jax.cli.health.findings import Verdict
from langchain_gemma_jax.engine.prefix_store.prefix_names import PREFIX
from langchain_gemma_jax.jax_check import FAULTS
from tests.cli.terminal import Terminal


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GEMMA_JAX_COMPILE_CACHE", str(tmp_path / "programs"))
    monkeypatch.setenv("TERM", "xterm")


def test_whatever_raises_is_a_finding_and_the_others_are_looked_at(monkeypatch, capsys):
    def fail():
        raise RuntimeError("no driver\x1b[2J")

    monkeypatch.setattr(jax, "local_devices", fail)
    monkeypatch.setattr(machine, "find_fault", lambda _: FAULTS[1])
    assert main(["doctor", "--quick", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    found = {each["what"]: each for each in shown["findings"]}
    assert shown["verdict"] == "bad"
    assert found["known faults"]["advice"].startswith("Install a release >=")
    assert found["devices"]["found"] == "RuntimeError: no driver\x1b[2J"
    assert "Install JAX again" in found["devices"]["advice"]
    assert found["releases"]["verdict"] == "ok"
    assert main(["doctor", "--quick"]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.endswith("Something is wrong: what is marked `bad` has to be put right first.\n")


def test_kept_prefixes_are_counted_and_an_unsafe_folder_is_a_finding(tmp_path):
    assert list(machine._kept_prefixes()) == []
    folder = tmp_path / "prefixes"
    folder.mkdir(mode=0o700)
    (folder / f"one{PREFIX}").write_bytes(bytes(2048))
    (folder / "writing.claim").write_bytes(b"1")
    [kept] = machine._kept_prefixes()
    assert (kept.verdict, "1 prefixes, 2.0 KiB" in kept.found) == (Verdict.OK, True)
    folder.chmod(0o777)
    [unsafe] = machine._kept_prefixes()
    assert unsafe.verdict is Verdict.WARN
    assert "can be written to by others" in unsafe.found


def cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_second_process_really_finds_what_the_first_compiled():
    with Terminal((80, 24)) as terminal:
        assert main(["doctor"]) == 0
        shown = " ".join(terminal.take().split())
        assert "self-test: sprout-s: first answer after" in shown
        assert "programs came from the disk, 0 were compiled" in shown
        assert "All is well." in shown or "It works." in shown
        before = cpu_seconds_of_children()
        assert main(["doctor", "--json"]) == 0
        took, found = cpu_seconds_of_children() - before, json.loads(terminal.take())
        said = {each["what"]: each for each in found["findings"]}
        assert "0 were compiled" in said["second process"]["found"]
        assert took < self_test.SECONDS, "of both processes, whatever else the machine does"
