"""Many at once, in threads and in event loops; and those who stop listening."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import HumanMessage

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
