"""A process with a real Gemma keeps to its budget of memory: bytes, which no busy machine changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.start.packed import MIB, Found, process
from langchain_gemma_jax.kernels.library import kernels
from tests.real.real_model import FILE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason="the real weights are not here: scripts/real fetches them"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says what a process has"),
    pytest.mark.skipif(not kernels().run, reason="the budget is that of the kernels' programs"),
    pytest.mark.timeout(3000),
]

PRIVATE, RESIDENT = 230, 600  # MiB after ten turns: a process that maps its weights has 197 and 534
FIRST = 360  # and private ones of the process that compiled everything: it has 297


def after_ten_turns(cache: Path) -> Found:
    with process("ours", FILE, str(cache)) as found:
        return found


def test_a_first_process_and_later_ones_keep_to_their_budgets(tmp_path):
    tmp_path.chmod(0o700)
    first, later = after_ten_turns(tmp_path), after_ten_turns(tmp_path)
    assert first.memory["private"] <= FIRST * MIB
    assert later.memory["private"] <= PRIVATE * MIB
    assert later.memory["resident"] <= RESIDENT * MIB
    with process("ours", FILE, str(tmp_path)) as one, process("ours", FILE, str(tmp_path)) as other:
        assert other.memory["share"] < one.memory["share"], "weights are shared"
        assert other.memory["share"] <= RESIDENT * MIB - FILE.stat().st_size // 3
