"""Failed tests in continuous integration: up to three run once more, and those that pass then are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import unsteady

TESTS = """
import pathlib

def test_passes_the_second_time():
    before = pathlib.Path("ran")
    if not before.exists():
        before.touch()
        raise AssertionError("the first time")

def test_passes():
    pass

def test_fails_if_asked():
    assert not pathlib.Path("fail").exists()

"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "test_some.py").write_text(TESTS)
    options = ["--disable-plugin-autoload", "-pxdist"]
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\naddopts = {options}\n")
    monkeypatch.setattr(unsteady, "ROOT", tmp_path)
    return tmp_path


def run(project: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-n2"]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode


def test_a_test_that_passes_by_itself_is_named(project, capfd):
    assert run(project) == 1
    assert unsteady.main() == 0
    named = (project / "build/unsteady.txt").read_text()
    assert named == f"{sys.version_info.major}.{sys.version_info.minor} test_some.py::test_passes_the_second_time\n"
    out = capfd.readouterr().out
    assert "UNSTEADY" in out
    assert out.count("1 passed") == 1, "only what failed runs again"


def test_one_that_fails_twice_is_a_failure(project, capfd):
    (project / "fail").touch()
    assert run(project) == 1
    assert unsteady.main() == 1
    assert "failed twice: test_some.py::test_fails_if_asked" in capfd.readouterr().out
    assert not (project / "build").exists()


def test_many_failures_do_not_run_again(project, capfd):
    failing = "".join(f"def test_{number}():\n    assert False\n" for number in range(unsteady.MOST + 1))
    (project / "test_some.py").write_text(failing)
    assert run(project) == 1
    assert unsteady.main() == 1
    assert "4 tests failed" in capfd.readouterr().out


def test_a_run_without_failed_tests_ended_for_another_reason(project, capfd):
    (project / "test_some.py").write_text("def test_passes():\n    pass\n")
    assert run(project) == 0
    assert unsteady.main() == 1
    assert "Nothing runs again" in capfd.readouterr().out
