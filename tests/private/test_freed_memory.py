from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURE = """
from pathlib import Path
from langchain_gemma_jax.private.freed_memory import give_back

def resident():
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) << 10

pieces = [bytearray(5000) for _ in range(20000)]
kept = pieces[::100]
del pieces
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process holds")
def test_what_lies_between_things_that_stay_is_given_back():
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 60e6
