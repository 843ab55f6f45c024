"""Agents that are badly written on purpose are caught, each by its guard; the same one on ``ChatGemmaJax`` is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "failure_modes"
SAID = {
    "recompile": "pad lengths",
    "transfer": "jax.device_put",
    "residency": "keep what jax.device_put returned",
    "cold_start": "Compile before the clock runs",
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", SAID)
def test_a_badly_written_agent_is_caught_and_ours_is_not(mode, tmp_path):
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"{mode}.py")],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(FOLDER.parents[1]), "GEMMA_JAX_COMPILE_CACHE": str(tmp_path / "programs")}
        | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"{mode} guard:" in done.stdout
    assert SAID[mode] in done.stdout
    assert f"{mode}.py:" in done.stdout, "its line is told"
    if mode == "transfer":
        assert re.search(r"^Its report: \d+ implicit copies, .* in total$", done.stdout, re.MULTILINE)
        assert "ChatGemmaJax: no device placement mismatches detected\n" in done.stdout
    (trips,) = re.findall(r"trips of guards +(\d+) +(\d+)", done.stdout)
    assert int(trips[0]) > 0
    assert int(trips[1]) == 0
    (compiles,) = re.findall(r"compiles +(\d+) +(\d+)", done.stdout)
    assert int(compiles[1]) == 0, "all of it was warmed up"
    (drawn,) = tmp_path.glob("*.html")
    assert len(ET.fromstring(f"<all>{drawn.read_text()}</all>")) == 2
    assert "GuardWarning" not in done.stderr


def test_every_mode_has_its_example():
    assert {path.stem for path in FOLDER.glob("*.py")} - {"shared"} == set(SAID)
