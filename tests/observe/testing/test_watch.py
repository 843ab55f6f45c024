"""The pytest plugin: in pytest runs of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from langchain_gemma_jax.observe.testing.watch import Watch, markdown, summary

ROOT = Path(__file__).parents[3]

TESTS = """
import jax, jax.numpy as jnp, numpy as np, pytest

step = jax.jit(lambda x: x * 2)

@pytest.mark.gemma_jax(max_compiles=0)
def test_every_length_is_new():
    for n in (3, 4, 5):
        step(jax.device_put(np.ones(n, np.float32)))

@pytest.mark.gemma_jax(max_compiles=0)
def test_one_length():
    step(jax.device_put(np.ones(3, np.float32)))

@pytest.mark.gemma_jax(max_transfer_bytes=0)
def test_host_memory():
    step(np.ones(4, np.float32))

@pytest.mark.gemma_jax(max_cold_start_s=0)
def test_cold():
    jax.jit(lambda x: x + 3)(jax.device_put(np.ones(7, np.float32)))

def test_nothing():
    pass

@pytest.mark.gemma_jax(max_compiles=0, max_transfer_bytes=0)
def test_a_failure_of_its_own():
    assert 1 == 2
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "langchain_gemma_jax_pytest",
        "-q",
        "--rootdir",
        str(folder),
        *options,
    ]
    (folder / "pytest.ini").touch()
    return subprocess.run(command, cwd=folder, env=environment(), check=False, capture_output=True, text=True)


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.mark.long
def test_costs_that_come_back_fail_the_test_and_are_reported(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    ended = run(
        tmp_path, "--gemma-jax-report=r/costs.json", "--gemma-jax-report=costs.md", "--junitxml=junit.xml", "test_it.py"
    )
    assert "4 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "XLA compiled 3 programs, and the test may have 0. Give every call" in ended.stdout
    assert "16 B were copied implicitly, and the test may have 0 B" in ended.stdout
    assert "and the test may wait 0 s. Warm up" in ended.stdout
    report = json.loads((tmp_path / "r" / "costs.json").read_text())
    found = {test["app"].partition("::")[2]: test for test in report["tests"]}
    assert len(found) == 6
    assert found["test_every_length_is_new"]["trips"] == {"recompile": 2}
    assert found["test_host_memory"]["trips"] == {"transfer": 1}
    assert found["test_host_memory"]["transfer_bytes"] == 16
    assert found["test_nothing"]["compiles"] == 0
    assert {name for name, test in found.items() if test["outcome"] == "passed"} == {"test_one_length", "test_nothing"}
    assert report["sums"]["trips"] == {"recompile": 2, "transfer": 1}
    table = (tmp_path / "costs.md").read_text()
    assert "| `test_it.py::test_every_length_is_new` | failed | 3 |" in table
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "junit.xml").iter("testcase")}
    said = {each.get("name"): each.get("value") for each in cases["test_host_memory"].iter("property")}
    assert said["gemma_jax_transfer_bytes"] == "16"
    assert said["gemma_jax_trips"] == '{"transfer": 1}'


def test_a_run_that_does_not_use_it_imports_nothing(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert not {'jax', 'langchain_gemma_jax', 'numpy'} & set(sys.modules)\n"
    )
    ended = run(tmp_path, "test_it.py")
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


class Config:
    """The parts of pytest's configuration that the plugin asks for."""

    def __init__(self, *files: Path) -> None:
        self.files = list(map(str, files))

    def getoption(self, _: str) -> list[str]:
        return self.files


def test_what_cannot_be_is_said_before_a_test_runs(tmp_path):
    class Item:
        nodeid = "test_it.py::test_it"

        def get_closest_marker(self, _: str) -> pytest.Mark:
            return pytest.mark.gemma_jax(max_compile=0).mark

    with pytest.raises(pytest.UsageError, match=r"test_it: @pytest.mark.gemma_jax: expected max_compiles=\.\.\., "):
        Watch(Config()).check([Item()])
    (tmp_path / "file").touch()
    with pytest.raises(pytest.UsageError, match=r"costs\.json cannot be written: File exists"):
        Watch(Config(tmp_path / "good.json", tmp_path / "file" / "costs.json"))


@pytest.mark.slow
def test_reports_are_written_where_tests_run_in_other_processes(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    ended = run(tmp_path, "-p", "xdist", "-n2", "--gemma-jax-report=costs.json", "--junitxml=junit.xml", "test_it.py")
    assert "4 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr
    report = json.loads((tmp_path / "costs.json").read_text())
    assert len(report["tests"]) == 6
    assert report["sums"]["trips"] == {"recompile": 2, "transfer": 1}
    assert (tmp_path / "junit.xml").read_text().count("gemma_jax_compiles") == 6
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.gemma_jax(max_compile=0)\ndef test_it():\n    pass\n"
    )
    ended = run(tmp_path, "test_it.py")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "@pytest.mark.gemma_jax: expected max_compiles=..., " in ended.stdout + ended.stderr


def test_applications_are_added_up_over_tests():
    costs = {"outcome": "passed", "compiles": 0, "compile_s": 0.0, "transfer_bytes": 0}
    tests = [
        {**costs, "app": "a", "trips": {"residency": 3}, "apps": {"billing": {"residency": 2}}},
        {**costs, "app": "b", "trips": {"residency": 2}, "apps": {"billing": {"residency": 1}, "a|b": {"transfer": 1}}},
    ]
    assert summary(tests)["apps"] == {"billing": {"residency": 3}, "a|b": {"transfer": 1}}
    assert "| `billing` | residency 3 |" in markdown(tests)
    assert "by application" not in markdown([{**each, "apps": {}} for each in tests])


def test_a_report_of_nothing():
    assert summary([])["sums"] == {"compiles": 0, "compile_s": 0, "transfer_bytes": 0, "trips": {}}
    assert "0 tests: 0 programs" in markdown([])
