"""Two sizes behind one chat model share a memory that holds one of them dense: packed, none of them has to leave."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax import ChatGemmaJax, Choice, Route, Sampling
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write

LAYERS = {"light": 1, "heavy": 3}
LADDERS = Ladders(chunks=(16,), capacities=(512,), rows=(1,), draft=0)


def by_turns(signals):
    """Another size each time: the most that memory can be asked for."""
    return Choice("heavy" if signals.last == "light" else "light", "by turns")


@pytest.fixture
def engine_with(monkeypatch):
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)

    def engine_with(**settings):
        monkeypatch.setattr(
            process, "_engine", Engine(Settings(ladders=LADDERS, drafts=False, guards="off", **settings))
        )
        return process.engine()

    yield engine_with
    jax.config.update("jax_disable_most_optimizations", before)


def with_template(writer):
    writer.add_chat_template("<start_of_turn>")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_budget_of_one_dense_size_holds_both_packed(tmp_path, engine_with):
    files = {}
    for kind in ("Q4_K", "F32"):
        for seed, (size, layers) in enumerate(LAYERS.items()):
            tiny = CONFIGS["gemma"]  # with a table of tokens beside which layers and what programs need are little
            config = replace(tiny, layers=tiny.layers[:1] * layers, vocab_size=1 << 14)
            files[kind, size] = tmp_path / f"{size}-{kind}.gguf"
            write(files[kind, size], config, of_one_kind(kind), seed, tokenizer=small_tokenizer(), more=with_template)
    engine, needs = engine_with(), {}
    for key, path in files.items():
        served = engine.load(path)
        engine.submit(served, list(range(6, 90)), Sampling(max_tokens=3)).result()  # what programs need is known then
        entry = engine._owner.models.known[served].entry
        assert entry.workspace > 0
        needs[key] = entry.need
        engine.unload(served)
    assert engine.close(30)
    budget = needs["F32", "heavy"] + needs["F32", "light"] // 2
    assert needs["Q4_K", "heavy"] + needs["Q4_K", "light"] < budget < needs["F32", "heavy"] + needs["F32", "light"]

    def evictions(kind):
        engine = engine_with(memory_budget=budget)
        route = Route(light=str(files[kind, "light"]), heavy=str(files[kind, "heavy"]), policy=by_turns)
        llm = ChatGemmaJax(model="auto", route=route, max_tokens=3, temperature=0)
        talk, seen = [], []
        for word in "abcdef":
            talk.append(HumanMessage(word))
            talk.append(llm.invoke(talk))
            seen.append(talk[-1].response_metadata["route"]["size"])
        assert seen == ["light", "heavy"] * 3
        report = engine.report()
        assert engine.close(30)
        return report.models_evicted, report.loads

    assert evictions("Q4_K") == (0, 2)
    evicted, loads = evictions("F32")
    assert evicted >= 4
    assert loads >= 5
