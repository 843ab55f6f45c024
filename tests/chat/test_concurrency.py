"""Many at once, in threads and in event loops; and those who stop listening."""

from __future__ import annotations

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax.chat.calling.batch_concurrency import AT_ONCE, together
from tests.counted import lines
from tests.loop_turns import SHORT, turns_of
from tests.waiting import until

WORDS = [chr(65 + number) * 3 for number in range(12)]


@pytest.mark.long
async def test_all_ways_say_the_same(chat_of):
    model = chat_of()
    expected = [model.invoke(word).content for word in WORDS]
    assert [answer.content for answer in model.batch(WORDS)] == expected
    assert [answer.content for answer in await model.abatch(WORDS)] == expected
    with ThreadPoolExecutor(12) as pool:
        assert [answer.content for answer in pool.map(model.invoke, WORDS)] == expected
    assert ["".join([chunk.content async for chunk in model.astream(word)]) for word in WORDS[:2]] == expected[:2]


@pytest.mark.parametrize("in_tasks", [False, True])
async def test_a_batch_is_on_its_way_at_once(in_tasks, scripted):
    # Nobody is answered before all have asked.
    model, engine = scripted(*["Hello"] * len(WORDS))
    all_there = threading.Barrier(len(WORDS), timeout=60)
    engine.before = all_there.wait
    if in_tasks:
        with ThreadPoolExecutor(len(WORDS)) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            answers = await model.abatch(WORDS)
    else:
        answers = await asyncio.to_thread(model.batch, WORDS)
    assert [answer.content for answer in answers] == ["Hello"] * len(WORDS)


def test_a_limit_of_the_users_holds():
    assert together(None) == {"max_concurrency": AT_ONCE}
    assert together({"max_concurrency": 2, "tags": ["a"]}) == {"max_concurrency": 2, "tags": ["a"]}
    assert together([{"tags": ["a"]}, {"max_concurrency": None}]) == [
        {"max_concurrency": AT_ONCE, "tags": ["a"]},
        {"max_concurrency": AT_ONCE},
    ]


def test_a_failure_in_a_batch_is_its_own(scripted):
    model, _ = scripted("Hello", "Hello")
    image = [HumanMessage([{"type": "image", "url": "https://example.org/a.png"}])]
    first, failed, last = model.batch(["Hi", image, "Hi"], return_exceptions=True)
    assert (first.content, type(failed).__name__, last.content) == ("Hello", "MediaError", "Hello")


@pytest.mark.long
async def test_the_event_loop_is_free_while_tokens_come(chat_of):
    model = chat_of()
    await model.abatch(WORDS)  # what is compiled is compiled

    async def listen(word: str) -> None:
        async for _chunk in model.astream(word, max_tokens=200):
            pass

    async def all_of_them() -> None:
        await asyncio.gather(
            *[listen(word) for word in WORDS[:4]], *[model.ainvoke(w, max_tokens=200) for w in WORDS[4:]]
        )

    found = await turns_of(all_of_them())
    assert found.longest < SHORT
    assert not found.ran("langchain_gemma_jax/engine/device/")


@pytest.mark.long
async def test_the_event_loop_is_free_while_a_long_prompt_is_encoded(scripted):
    model, _ = scripted("Hi<turn|>", room=1 << 21)
    text = "All work and no play makes Jack a dull boy. " * 24_000  # 1 MB

    async def ask() -> None:
        await model.ainvoke(text)

    found = await turns_of(ask())
    assert found.longest < SHORT
    assert not found.ran("langchain_gemma_jax/models/tokenizer/")


@pytest.mark.parametrize("how", ["close", "break"])
def test_a_stream_that_is_left_stops_the_work(how, scripted):
    model, engine = scripted("Hello<turn|>")
    stream = model.stream("Hi")
    next(stream)
    (request,) = engine.requests
    assert not request.cancelled.is_set()
    if how == "close":
        stream.close()
    else:
        del stream
    assert request.cancelled.is_set()


async def test_an_asynchronous_stream_that_is_left_stops_the_work(scripted):
    model, engine = scripted("Hello<turn|>")
    stream = model.astream("Hi")
    await anext(stream)
    (request,) = engine.requests
    assert not request.cancelled.is_set()
    await stream.aclose()
    await asyncio.to_thread(until, request.cancelled.is_set)


async def test_the_work_has_stopped_when_a_stream_is_closed(scripted):
    model, engine = scripted("Hello<turn|>")
    stream = model._astream([HumanMessage("Hi")])
    await anext(stream)
    await stream.aclose()
    assert engine.requests[0].cancelled.is_set()


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


def test_whoever_interrupts_the_waiting_stops_the_work(scripted, monkeypatch):
    model, engine = scripted()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("langchain_gemma_jax.engine.requests.mailbox.Mailbox.get", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.invoke("Hi")
    assert engine.requests[0].cancelled.is_set()
    assert caught.value.__traceback__ is not None  # which keeps the generation alive, so that nothing else cancels it


def test_the_device_really_stops(chat_of, running):
    model = chat_of(max_tokens=1500)
    stream = model.stream("HELLO")
    next(stream)
    stream.close()
    until(lambda: running.report().running == 0)
    assert running.report().waiting == 0


def wide_schema(title: str, properties: int = 200) -> dict:
    kinds = [
        {"type": "string", "maxLength": 20},
        {"type": "integer", "minimum": 0, "maximum": 1000},
        {"enum": ["red", "green", "blue"]},
        {"type": "array", "items": {"type": "number"}, "maxItems": 5},
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    ]
    members = {f"property_{number}": kinds[number % len(kinds)] for number in range(properties)}
    return {"title": title, "description": "Many members.", "type": "object", "properties": members}


@pytest.mark.long
async def test_the_event_loop_is_free_while_a_large_schema_is_compiled(whole_of):
    model = whole_of()
    await model.with_structured_output(wide_schema("narrow", 3), method="json_mode").ainvoke("HELLO")
    # In this mode it is not told to the model, whose context is small.
    bound = [model.with_structured_output(wide_schema(f"wide_{number}"), method="json_mode") for number in range(6)]

    async def ask() -> None:
        for wide in bound:
            assert isinstance(await wide.ainvoke("HELLO"), dict)

    found = await turns_of(ask())
    assert found.longest < SHORT
    assert not found.ran("langchain_gemma_jax/grammar/")


def test_a_large_schema_is_bound_in_a_few_steps_each(chat_of):
    model, titles = chat_of(), itertools.count()

    def bind_anew():
        model.bind_tools([wide_schema(f"wide_{next(titles)}")], tool_choice="any")

    assert lines(bind_anew) < 1_000_000  # in two notations
