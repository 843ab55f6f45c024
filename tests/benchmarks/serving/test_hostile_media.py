"""The benchmark of crafted media: all of them are read or refused, and nothing is left of them."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.serving import hostile_media

ROOT = Path(__file__).parents[3]


def test_half_of_the_files_are_damaged_and_all_kinds_are_made(monkeypatch):
    for name in ("PIL", "soundfile", "pypdfium2"):
        pytest.importorskip(name)
    made = {name: lambda chance: ("image", b"") for name in hostile_media.CRAFTED}
    monkeypatch.setattr(hostile_media, "CRAFTED", made)
    found = list(hostile_media.files(200, random.Random(0)))
    assert sum(name.startswith("damaged") for name, *_ in found) == 100
    assert {name for name, *_ in found} >= set(made)
    assert found == list(hostile_media.files(200, random.Random(0)))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_its_exit_status_says_that_all_is_well():
    for name in ("PIL", "soundfile", "pypdfium2"):
        pytest.importorskip(name)
    run = [sys.executable, str(ROOT / "benchmarks/serving/hostile_media.py"), "--count", "60"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left: none" in done.stdout
