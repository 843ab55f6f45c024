"""The benchmark of what comes back into memory: what it says, and that it measures what it says."""

from __future__ import annotations

import json

import pytest

from benchmarks.memory import memory
from benchmarks.work.checkpoint import shapes
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf

TIMES = memory.Times(
    nbytes=2 * 10**9,
    floor=[1.0, 2.0, 1.0],
    swap=[1.2, 2.2, 1.4],
    first_token=[1.5, 2.5, 1.6],
    leave=[0.01] * 6,
    again=[10.0, 8.0, 9.0],
    back=[1.0, 2.0, 0.9],
    kv_bytes=10**8,
    restored=2,
)


def test_ratios_are_those_of_a_round_and_a_missed_bar_is_said_so():
    text = memory.report({"m": TIMES}, 3, 0.25)
    back = "its bytes, read and put: 1.000 s"
    assert f"| load() of an evicted model | m | 1.400 s | {back} | 1.20 × | ≤ 1.3 × | reached |" in text
    assert "| go on, 1000 tokens on the host | m | 1.000 s | read again: 9.000 s | 0.10 × | ≤ 0.2 × | reached |" in text
    assert "2 of 3 came back from the host" in text
    TIMES.swap[0] = 1.6
    assert "1.40 × | ≤ 1.3 × | **missed** by 8 %" in memory.report({"m": TIMES}, 3, None)


def test_the_shape_is_that_of_the_published_size():
    config = published("gemma-3-1b")
    assert config_from_hf(json.loads(json.dumps(memory.ONE_B)), "config.json").layers == config.layers
    matrices = sum(rows * columns * 2 for _, (rows, *rest) in shapes(memory.ONE_B) for columns in rest)
    assert total_bytes(abstract(config)) == pytest.approx(matrices, rel=0.001)


def test_the_floor_is_the_time_of_the_whole_file(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(3 << 20))
    assert 0 < memory.floor(tmp_path / "weights") < 5


def test_an_unknown_model_is_refused(capsys):
    with pytest.raises(SystemExit):
        memory.main(["--models", "gemini"])
    assert "found gemini" in capsys.readouterr().err
