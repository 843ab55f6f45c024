"""Evicted models whose files are others when they come back: whoever asked hears of it, and the engine goes on."""

from __future__ import annotations

import os

import jax
import pytest

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError
from langchain_gemma_jax.models.loading import place as place_module
from tests.engine.faults_support import SMALL, assert_works, greedy
from tests.engine.residents_support import folders_in, status
from tests.tiny_gemma import tiny_gemma


@pytest.fixture
def evicted(engine_of, tmp_path):
    """An engine, a model of it that is not in memory, its folder, and what it answered before."""
    folder = folders_in(tmp_path)[0]
    engine = engine_of(ladders=SMALL)
    served = engine.load(folder)
    before = engine.submit(served, [2, 5, 6, 7], greedy(4)).result().ids
    engine.evict(served)
    assert not status(engine, served).resident
    return engine, served, folder, before


@pytest.mark.long
def test_a_file_that_is_cut_off_while_its_model_comes_back(evicted, monkeypatch):
    engine, served, folder, before = evicted
    monkeypatch.setattr(place_module, "_SMALL", 0)
    put, path = jax.device_put, folder / "model.safetensors"
    calls = []

    def device_put(*given):
        calls.append(given)
        if len(calls) == 3:
            os.truncate(path, 4000)
        return put(*given)

    with monkeypatch.context() as patched:
        patched.setattr(jax, "device_put", device_put)
        with pytest.raises(CorruptCheckpointError, match="written to"):
            engine.submit(served, [2, 5, 6, 7], greedy(4)).result()
    path.write_bytes(tiny_gemma(seed=0)["model.safetensors"])
    assert engine.submit(served, [2, 5, 6, 7], greedy(4)).result().ids == before
    assert_works(engine, served)


def test_another_tokenizer_is_never_mixed_with_the_old_one(evicted):
    engine, served, folder, before = evicted
    path = folder / "tokenizer_config.json"
    sound = path.read_bytes()
    path.write_bytes(b'{"bos_token": "<bos>", "eos_token": "<pad>", "pad_token": "<pad>"}')
    with pytest.raises(CheckpointError, match=r"another tokenizer than its own\. Unload it, and load it again"):
        engine.submit(served, [2, 5, 6, 7], greedy(4)).result()
    path.write_bytes(sound)
    assert engine.submit(served, [2, 5, 6, 7], greedy(4)).result().ids == before
