"""One call: its time, and the prompt that it may have."""

from __future__ import annotations

import time

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_gemma_jax import ContextLengthError, DeadlineError, InputError


def test_place_and_time_reach_the_engine(scripted):
    model, engine = scripted("Hello", scope="tenant", timeout=60)
    model.invoke([SystemMessage("Be brief."), HumanMessage("Hi")])
    (request,) = engine.submitted
    assert request["scope"] == "tenant"
    assert 0 < request["system"] < len(request["prompt"])
    assert 50 < request["timeout"] <= 60


def test_the_time_that_is_spent_before_the_engine_counts(scripted, monkeypatch):
    model, engine = scripted("Hello", timeout=100)
    load = engine.load
    monkeypatch.setattr(engine, "load", lambda *args, **how: time.sleep(0.1) or load(*args, **how))
    model.invoke("Hi")
    assert 50 < engine.submitted[0]["timeout"] <= 99.9


def test_deadlines_hold(scripted):
    model, _ = scripted(timeout=0.05)
    with pytest.raises(DeadlineError):
        model.invoke("Hi")
    with pytest.raises(DeadlineError):
        list(model.stream("Hi"))


async def test_deadlines_hold_in_tasks_too(scripted):
    model, _ = scripted(timeout=0.05)
    with pytest.raises(DeadlineError):
        await model.ainvoke("Hi")
    with pytest.raises(DeadlineError):
        async for _chunk in model.astream("Hi"):
            pass


def test_a_context_is_never_cut_off(scripted):
    model, engine = scripted("Hello", "Hello", max_context=100)
    with pytest.raises(ContextLengthError) as caught:
        model.invoke("A" * 100)
    assert caught.value.limit == 99
    model.invoke("A" * 50)
    (request,) = engine.submitted
    assert request["sampling"].max_tokens == 100 - len(request["prompt"])
    model.invoke("A", max_tokens=3)
    assert engine.submitted[1]["sampling"].max_tokens == 3
    with pytest.raises(InputError, match="scripted can have up to 4096 tokens here; found 5000"):
        model.invoke("A", max_context=5000)
