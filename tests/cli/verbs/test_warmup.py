"""Programs are made before they are needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.executables.warmup import Warmup
from tests.tiny_gemma import tiny_gemma

ROOT = Path(__file__).parents[3]


def files(root):
    return sorted(path.name for path in root.rglob("*.entry"))


def test_warmup_asks_the_engine_and_prints_what_it_is_worth(monkeypatch, capsys):
    asked = []

    class FakeEngine:
        def load(self, model, *, dtype, weights, activations, devices):
            asked.append((model, dtype, weights, activations, devices))
            return "served"

        def warmup(self, served, *, max_context):
            asked.append((served, max_context))
            return Warmup(4, 3, 2.5, 4.0, 3.5, 0.25)

    monkeypatch.setattr(process, "engine", FakeEngine)
    how = ["--dtype", "float32", "--weights", "int8", "--activations", "float32", "--devices", "auto"]
    assert main(["warmup", "some/model", "--max-context", "16", *how]) == 0
    assert asked == [("some/model", "float32", "int8", "float32", "auto"), ("served", 16)]
    assert capsys.readouterr().out == (
        "4 programs, 3 of them compiled, in 2.5 s. What a first answer needs takes a new process 0.2 s to fetch, and "
        "took 3.5 s to compile.\n"
    )


@pytest.mark.slow
def test_warmup_fills_the_cache_for_the_next_process(root, tmp_path, monkeypatch):
    model = tmp_path / "tiny"
    model.mkdir()
    for name, content in tiny_gemma().items():
        (model / name).write_bytes(content)
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    command = [sys.executable, "-m", "langchain_gemma_jax.cli", "warmup", str(model), "--max-context", "16"]
    found = [subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True) for _ in range(2)]
    assert [one.stderr for one in found] == ["", ""]
    assert " 0 of them compiled" not in found[0].stdout
    assert " 0 of them compiled" in found[1].stdout
    assert "s to compile." in found[1].stdout
    assert len(files(root)) > 4
