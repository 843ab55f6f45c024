from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.forward.forward import RIVALS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("program", ["forward", "engine"])
def test_it_runs_by_path_from_anywhere(tmp_path, program):
    command = [sys.executable, ROOT / "benchmarks" / program / f"{program}.py", "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "--rivals" in result.stdout


def test_there_is_a_recipe_for_the_environment_of_each_rival():
    recipes = (ROOT / "scripts" / "reference_env").read_text()
    assert [name for name in RIVALS if f"\n{name})\n" not in recipes] == []
    (made,) = re.findall(r"for name in (.*);", (ROOT / "scripts" / "rivals").read_text())
    assert set(RIVALS) <= set(made.split())
