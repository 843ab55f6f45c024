"""Reading ahead: at once there, stopped when told to, and given up where others need the place."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax import ChatGemmaJax, ContextLengthError, InputError
from langchain_gemma_jax.chat.calling.reading_ahead import Preparation
from langchain_gemma_jax.errors import BusyError
from tests.serving import serving
from tests.waiting import LONG, until


def test_it_ends_with_what_came_of_it():
    async def well() -> bool:
        return True

    async def badly() -> bool:
        raise InputError("no")

    assert Preparation(well).result(LONG) is True
    with pytest.raises(InputError, match="no"):
        Preparation(badly).result(LONG)


def test_cancelling_stops_it_at_any_moment():
    for early in (True, False):
        begun, stopped = threading.Event(), threading.Event()

        async def forever(begun=begun, stopped=stopped) -> bool:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return True

        ahead = Preparation(forever)
        if not early:
            assert begun.wait(LONG)
        ahead.cancel()
        assert ahead.result(LONG) is False
        assert ahead.done
        assert stopped.is_set() or early
        ahead.cancel()  # late


def test_a_prompt_is_submitted_as_one_that_nobody_waits_for(scripted):
    model, engine = scripted("x", "y", "Hello")
    tool = {"title": "ring", "description": "Rings.", "type": "object", "properties": {}}
    assert model.prepare("Hi", tools=[tool]).result(LONG) is True
    assert asyncio.run(model.aprepare([HumanMessage("Hi")])) is True
    first, second = engine.submitted
    assert first["ahead"] is second["ahead"] is True
    assert first["sampling"].max_tokens == 1
    assert first["sampling"].grammar is None
    assert len(first["prompt"]) > len(second["prompt"]), "tools stand in the prompt"
    assert model.bind_tools([tool]).invoke("Hi").text == "Hello"
    assert engine.submitted[-1]["prompt"] == first["prompt"]
    assert engine.submitted[-1]["ahead"] is False
    with pytest.raises(InputError, match="temperature"):
        model.prepare("Hi", temperature=-1)
    with pytest.raises(ContextLengthError):
        model.prepare("Hi " * 100_000).result(LONG)

    def full() -> None:
        raise BusyError("full")

    engine.before = full
    assert model.prepare("Hi").result(LONG) is False


def test_a_server_reads_ahead_and_stops_when_told_to(scripted):
    _, engine = scripted("x")
    with serving(None) as server:
        model = ChatGemmaJax(server=server.listening.shown, model="sprout-s")
        assert model.prepare("Hi").result(LONG) is True
        assert engine.submitted[-1]["ahead"] is True
        engine.silent = True
        ahead = model.prepare("Hi")
        until(lambda: len(engine.requests) == 2)
        ahead.cancel()
        assert ahead.result(LONG) is False
        until(engine.requests[-1].cancelled.is_set)
