from __future__ import annotations

import pytest
from safetensors.numpy import load_file

from benchmarks.forward.bandwidth import best_time
from benchmarks.forward.compile_time import compile_seconds
from benchmarks.forward.ours import dense
from benchmarks.running.serve import Job
from benchmarks.work.checkpoint import write_checkpoints
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from tests.benchmarks.work.test_checkpoint import TINY

PROMPT = [2, 9, 30, 41, 17]

pytestmark = pytest.mark.usefixtures("quick_compiles")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    write_checkpoints(folder, TINY)
    return folder


@pytest.mark.long
def test_decoding_gives_what_reading_would(folder):
    engine = dense(Job("float32", threads=1, folder=str(folder)))
    engine.read([50, 51, 52, 53, 54, 55, 56, 57, 58, 59])  # another prompt, longer: none of it may be seen later
    engine.forget()
    tokens = [*PROMPT, engine.read(PROMPT), *engine.decode(12)]
    assert engine._ends.tolist() == [len(tokens) - 1], "the last token is not in the cache yet"
    engine.forget()
    assert engine.read(tokens[:10]) == tokens[10]
    assert engine.read(tokens[:-1]) == tokens[-1]
    assert len(set(tokens[len(PROMPT) :])) > 3, "or agreeing would mean little"


@pytest.mark.long
def test_every_byte_of_the_weights_is_counted(folder):
    engine = dense(Job("bfloat16", threads=1, folder=str(folder)))
    stored = load_file(folder / "bfloat16" / "model.safetensors").values()
    assert engine.facts["weight_bytes"] == sum(array.size * (4 if array.ndim == 1 else 2) for array in stored)


@pytest.mark.long
def test_compiling_needs_shapes_only(folder, monkeypatch):
    config, tensors, _ = open_folder(folder / "float32")
    tensors.close()
    monkeypatch.setattr("benchmarks.forward.compile_time.published", lambda name: config)
    seconds = compile_seconds("tiny", "float32", prompt=32, capacity=64)
    assert set(seconds) == {"prefill", "pick", "decode"}
    assert all(value > 0.01 for value in seconds.values())


def test_the_best_of_several_runs_counts():
    took = iter([0.05, 0.0, 0.05, 0.05, 0.05])

    def way():
        import time

        time.sleep(next(took))

    assert best_time(way) < 0.04
