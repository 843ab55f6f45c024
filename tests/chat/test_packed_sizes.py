"""Two sizes behind one chat model share a memory that holds one of them dense: packed, none of them has to leave."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from langchain_gemma_jax import ChatGemmaJax, Route
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write

LAYERS = {"light": 2, "heavy": 6}
LADDERS = Ladders(chunks=(16,), capacities=(512,), rows=(1,), draft=0)


def ring(times: int) -> str:
    """Rings the bell."""
    return "ding" * times


@pytest.fixture
def engine_with(monkeypatch):
    def engine_with(**settings):
        monkeypatch.setattr(
            process, "_engine", Engine(Settings(ladders=LADDERS, drafts=False, guards="off", **settings))
        )
        return process.engine()

    return engine_with


@pytest.mark.slow
def test_a_budget_of_one_dense_size_holds_both_packed(tmp_path, engine_with):
    files = {}
    for kind in ("Q4_K", "F32"):
        for seed, (size, layers) in enumerate(LAYERS.items()):
            config = CONFIGS["gemma"]
            config = replace(config, layers=config.layers[:1] * layers)
            files[kind, size] = tmp_path / f"{size}-{kind}.gguf"
            template = partial(lambda writer: writer.add_chat_template("<start_of_turn>"))
            write(files[kind, size], config, of_one_kind(kind), seed, tokenizer=small_tokenizer(), more=template)
    engine, needs = engine_with(), {}
    for key, path in files.items():
        served = engine.load(path)
        needs[key] = engine._owner.models.known[served].entry.need
        engine.unload(served)
    assert engine.close(30)
    budget = needs["F32", "heavy"] + needs["F32", "light"] // 2
    assert needs["Q4_K", "heavy"] + needs["Q4_K", "light"] < budget < needs["F32", "heavy"] + needs["F32", "light"]

    def evictions(kind):
        engine = engine_with(memory_budget=budget)
        route = Route(light=str(files[kind, "light"]), heavy=str(files[kind, "heavy"]))
        llm = ChatGemmaJax(model="auto", route=route, max_tokens=3, temperature=0)
        seen = []
        for _ in range(3):
            seen.append(llm.invoke("Hi").response_metadata["route"]["size"])
            forced = llm.bind_tools([ring], tool_choice="any")
            seen.append(forced.invoke("Ring").response_metadata["route"]["size"])
        assert seen == ["light", "heavy"] * 3
        report = engine.report()
        assert engine.close(30)
        return report.models_evicted, report.loads

    assert evictions("Q4_K") == (0, 2)
    evicted, loads = evictions("F32")
    assert evicted >= 4
    assert loads >= 5
