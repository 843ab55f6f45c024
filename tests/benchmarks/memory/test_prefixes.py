"""The benchmark of prefixes on the disk: what it says, and that it measures what it says."""

from __future__ import annotations

import pytest

from benchmarks.memory import prefixes
from benchmarks.memory.memory import BUILT, MODELS, checkpoint


def test_the_ratio_is_the_middle_one_of_the_rounds_and_a_missed_bar_is_said():
    found = prefixes.PrefixTimes([4.0, 2.0, 4.0], [0.4, 0.4, 0.2], [3_000_000] * 3, 3, [4096] * 3)
    assert found.ratio == pytest.approx(0.1)
    text = prefixes.report(found, 3)
    assert "kept, by another process  0.400 s (3.0 MB, 4096 tokens)" in text
    assert "0.100 (at most 0.25: reached)" in text
    assert "same answers              3 of 3" in text
    found.back = [2.0, 1.0, 4.0]
    assert "0.500 (at most 0.25: **missed** by 100%)" in prefixes.report(found, 3)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["shared", "peers"])
def test_a_second_machine_reads_what_the_first_has_written(tmp_path, how):
    """Two processes with caches of their own, and one folder or a server, and 4,096 tokens of a 270M's shape."""
    pytest.importorskip("cryptography")
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    folder = checkpoint(BUILT / "gemma-3-270m", MODELS["gemma-3-270m"])
    found = prefixes.measure(folder, 1, tmp_path, encrypted=True, **{how: True})
    assert found.reused == [prefixes.SYSTEM]
    assert found.same == 1
