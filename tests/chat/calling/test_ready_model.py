"""``timeout`` covers all of a call, from when it is called, and says what the time went into."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax import ChatGemmaJax, Route
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.errors import DeadlineError
from tests.engine.model_files import FilesAround
from tests.waiting import LONG, until

LIMIT = 0.3


@pytest.fixture
def slow(running, folder_of, monkeypatch):
    """A model that does not come before its gate is open, and that gate."""
    gate, folder = threading.Event(), str(folder_of("gemma", seed=9))

    def opening(source, stop):
        if str(source) == folder:
            while not gate.wait(0.01):
                stop.check()

    monkeypatch.setattr(running._loader, "_files", FilesAround(opening=opening))
    yield folder, gate
    gate.set()
    if (known := running.status(folder)) is not None:
        running.unload(
            next(served for served, each in running._owner.models.known.items() if each.entry.name == known.name)
        )


def ways(model):
    """Every way to ask it one thing."""

    async def astream():
        return [chunk async for chunk in model.astream("HI")]

    async def abatch():
        return await model.abatch(["HI", "HO"])

    yield "invoke", lambda: model.invoke("HI")
    yield "ainvoke", lambda: asyncio.run(model.ainvoke("HI"))
    yield "stream", lambda: list(model.stream("HI"))
    yield "astream", lambda: asyncio.run(astream())
    yield "batch", lambda: model.batch(["HI", "HO"])
    yield "abatch", lambda: asyncio.run(abatch())
    yield "structured", lambda: model.with_structured_output({"title": "t", "type": "object"}).invoke("HI")


def none_is_being_begun():
    """Wait until no call is being begun in a thread of its own any more."""
    for thread in [thread for thread in threading.enumerate() if thread.name == "gemma-jax-call"]:
        thread.join(LONG)


def too_late(ask, match, limit=LIMIT):
    with pytest.raises(DeadlineError, match=match) as caught:
        ask()
    assert float(re.search(r"up after (\d+\.\d) s", str(caught.value))[1]) >= limit


@pytest.mark.long
def test_a_model_that_does_not_come_keeps_nobody(slow):
    folder, gate = slow
    for name, ask in ways(ChatGemmaJax(model=folder, timeout=LIMIT, max_tokens=4, guards="off")):
        too_late(ask, r"\d s loading '.*' \(\d\.\d s fetching and checking its files\)"), name
    none_is_being_begun()
    gate.set()
    assert ChatGemmaJax(model=folder, timeout=LONG, max_tokens=4).invoke("HI").usage_metadata["output_tokens"] == 4


async def test_those_who_wait_for_a_model_are_in_nobodys_way(slow, chat_of):
    folder, _ = slow
    loop, there = asyncio.get_running_loop(), chat_of(max_tokens=4)
    await there.ainvoke("HELLO")
    with ThreadPoolExecutor(1) as only:
        loop.set_default_executor(only)
        occupied = threading.Event()
        only.submit(occupied.wait, LONG)  # so that whoever uses asyncio's own threads does not get on
        waiting = [asyncio.create_task(ChatGemmaJax(model=folder).ainvoke("HI")) for _ in range(40)]
        try:
            await asyncio.sleep(0.1)
            answer = await asyncio.wait_for(there.ainvoke("HELLO"), LONG)
            assert answer.usage_metadata["output_tokens"] == 4
            ours = [t.name for t in threading.enumerate() if t.name in {"gemma-jax-load", "gemma-jax-call"}]
            assert ours.count("gemma-jax-load") == 1
            assert ours.count("gemma-jax-call") <= 2
        finally:
            occupied.set()
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting, timeout=LONG)
        assert all(task.cancelled() for task in waiting)


def test_a_grammar_that_takes_long_keeps_nobody(chat_of, running, monkeypatch):
    model = chat_of(max_tokens=4)
    model.invoke("HI")
    begin, gate = ModelGrammars.begin, threading.Event()

    def slowly(self, *args):
        gate.wait(LONG)
        return begin(self, *args)

    monkeypatch.setattr(ModelGrammars, "begin", slowly)
    held = model.bind(response_format={"title": "t", "type": "object"}, timeout=LIMIT)
    try:
        for ask in (lambda: held.invoke("HI"), lambda: asyncio.run(held.ainvoke("HI"))):
            too_late(ask, "compiling the grammar")
    finally:
        gate.set()
    none_is_being_begun()  # so that what came too late has come
    until(lambda: running.report().running + running.report().waiting == 0)  # it was stopped


def test_an_answer_that_takes_long_says_what_came_before_it(chat_of):
    model = chat_of(max_tokens=2000)
    model.invoke("HI", max_tokens=2)
    for ask in (lambda: model.invoke("HI", timeout=0.5), lambda: asyncio.run(model.ainvoke("HI", timeout=0.5))):
        too_late(ask, r"answering.*The deadline passed .* s after submission, while .* \(.*\), with \d+ tokens", 0.5)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_escalation_has_the_rest_of_the_time(way, scripted):
    route = Route(light="./light", heavy="./heavy", confidence=0.7)
    call = "<|tool_call>call:add{n:2}<tool_call|><|tool_response>"
    model, engine = scripted(call, call, model="auto", timeout=100, route=route)
    engine.before = lambda: time.sleep(0.2)
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}}
    bound = model.bind_tools([{"type": "function", "function": {"name": "add", "parameters": parameters}}])
    if way == "invoke":
        bound.invoke("HI")
    elif way == "ainvoke":
        await bound.ainvoke("HI")
    elif way == "stream":
        list(bound.stream("HI"))
    else:
        [chunk async for chunk in bound.astream("HI")]
    first, second = (asked["timeout"] for asked in engine.submitted)
    assert 50 < second <= first - 0.2 <= 99.8


@pytest.mark.long
async def test_a_batch_is_called_at_once_whenever_its_turn_is(scripted):
    model, engine = scripted(*["Hello<turn|>"] * 6, timeout=100)
    engine.before = lambda: time.sleep(0.2)
    model.batch(["A", "B", "C"], {"max_concurrency": 1})
    await model.abatch(["A", "B", "C"], {"max_concurrency": 1})
    left = [asked["timeout"] for asked in engine.submitted]
    for first, second, third in (left[:3], left[3:]):
        assert second <= first - 0.2
        assert third <= second - 0.2
