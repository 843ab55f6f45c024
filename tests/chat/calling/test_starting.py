"""A call that begins in a task, and the end of the task."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.loop_turns import SHORT, turns_of
from tests.waiting import until


@pytest.mark.long
async def test_the_event_loop_is_free_while_a_long_prompt_is_encoded(scripted):
    model, _ = scripted("Hi<turn|>", "Hi<turn|>", room=1 << 21)
    text = "All work and no play makes Jack a dull boy. " * 24_000  # 1 MB

    async def ask() -> None:
        await model.ainvoke(text)

    await model.ainvoke("Hi")  # what a first call imports is imported
    found = await turns_of(ask())
    assert found.longest < SHORT
    encoding = [file for file in found.ran("models/tokenizer/") if not file.endswith("interface.py")]  # look-ups alone
    assert not encoding


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cancelled_task_stops_the_work(streaming, scripted):
    model, engine = scripted(streaming=streaming)
    task = asyncio.create_task(model.ainvoke("Hi"))
    await asyncio.to_thread(until, lambda: bool(engine.requests))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.requests[0].cancelled.is_set()


async def test_a_task_that_is_cancelled_while_it_asks_leaves_nothing_running(scripted):
    model, engine = scripted()
    asking, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        asking.set()
        go_on.wait(300)

    engine.before = wait
    task = asyncio.create_task(model.ainvoke("Hi"))
    await asyncio.to_thread(asking.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.to_thread(until, lambda: bool(engine.requests) and engine.requests[0].cancelled.is_set())
