"""A real server is broken in ten ways, and what is seen is what the page says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def game_day() -> ModuleType:
    spec = importlib.util.spec_from_file_location("game_day", ROOT / "scripts" / "game_day.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| broken")]


@pytest.mark.slow
def test_ten_faults_are_seen_as_the_page_says():
    module = game_day()
    assert len(module.FAULTS) == 10
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "game_day.py")], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = module.PAGE.read_text().partition(module.BEGIN)[2].partition(module.END)[0]
    assert rows_of(done.stdout) == rows_of(page), "run: python scripts/game_day.py --page"


def test_the_page_has_every_fault_and_what_is_unexpected_is_never_written():
    module = game_day()
    page = module.PAGE.read_text().partition(module.BEGIN)[2].partition(module.END)[0]
    assert [row.strip("| ").split(" | ")[0] for row in rows_of(page)] == list(module.FAULTS)
    assert "UNEXPECTED" not in page
    written = f"before\n{module.BEGIN}\nold\n{module.END}\nafter\n"
    made = module.page(written, [("a", "b", "c")])
    assert made.startswith("before\n")
    assert made.endswith(f"{module.END}\nafter\n")
    assert "| a | b | c |" in made
    assert "old" not in made
