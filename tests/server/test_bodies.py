"""Bodies: counted while they come, read beside the event loop, and few of the large ones at once."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from langchain_gemma_jax.client import message_forms
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import BusyError, DeadlineError
from langchain_gemma_jax.server.apis import caller, fields
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.http import bodies as module
from langchain_gemma_jax.server.http.bodies import LARGE, LARGE_AT_ONCE, Bodies
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.problems import RequestError
from langchain_gemma_jax.server.readiness import Readiness
from tests.server.test_fuzz import WHOLE
from tests.serving import answered


async def test_there_are_no_more_bytes_of_bodies_than_may_be_and_small_ones_always_come_in():
    bodies = Bodies(ServerLimits(body_bytes=4 * LARGE, bodies_bytes=5 * LARGE))
    async with bodies.body() as first, bodies.body() as second, bodies.body() as small:
        first.add(b"a" * 4 * LARGE)
        with pytest.raises(RequestError, match="more than the"):
            first.add(b"a")
        second.add(b"a" * LARGE)
        with pytest.raises(BusyError, match="Ask again"):
            second.add(b"a")
        small.add(b"{}")
        assert bodies.held == first.size + second.size + 2
        assert small.object() == {}
    assert bodies.held == 0


async def test_large_ones_are_read_a_few_at_once_in_their_order_and_small_ones_wait_for_nobody():
    bodies, order, going, most = Bodies(ServerLimits()), [], asyncio.Event(), 0

    async def read(number: int, size: int, seconds: float | None = None, *, early: bool = False) -> None:
        nonlocal most
        async with bodies.body() as body:
            body.add(b"a" * size)
            async with bodies.turn(body, Clock(seconds)) as end:
                order.append(number)
                most = max(most, bodies._large)
                if early:  # in any thread, and as often as anybody likes
                    for _ in range(2):
                        await asyncio.to_thread(end)
                await going.wait()

    large = [asyncio.create_task(read(number, LARGE + 1)) for number in range(LARGE_AT_ONCE + 3)]
    await asyncio.sleep(0)
    small = asyncio.create_task(read(100, LARGE))
    await asyncio.sleep(0.01)
    assert order == [*range(LARGE_AT_ONCE), 100]
    with pytest.raises(DeadlineError, match="waiting behind other large requests"):
        await read(101, LARGE + 1, 0.01)
    large[LARGE_AT_ONCE].cancel()  # whose client left
    going.set()
    await asyncio.gather(*large, small, return_exceptions=True)
    assert order == [*range(LARGE_AT_ONCE), 100, LARGE_AT_ONCE + 1, LARGE_AT_ONCE + 2]
    assert (most, bodies._large, bodies._waiting) == (LARGE_AT_ONCE, 0, [])
    going.clear()
    early = [asyncio.create_task(read(number, LARGE + 1, early=True)) for number in range(5)]
    while len(order) < LARGE_AT_ONCE + 3 + 5:  # noqa: ASYNC110  another thread ends a turn
        await asyncio.sleep(0.001)
    going.set()
    await asyncio.gather(*early)
    assert (most, bodies._large) == (LARGE_AT_ONCE, 0)


async def test_what_is_no_object_is_refused_and_let_go():
    bodies = Bodies(ServerLimits())
    for data in (b"", b"[]", b'{"a": NaN}', b"{" * 9, b"[" * 99_000, b"\xff{}", b'{"a": ' + b"[]," * 200_000):
        async with bodies.body() as body:
            body.add(data)
            with pytest.raises(RequestError, match="expected"):
                body.object()
            assert not body._parts


@pytest.mark.filterwarnings("ignore")
async def test_nothing_of_a_body_is_read_or_made_in_the_event_loops_thread(says, monkeypatch):
    """On no API: not the JSON, nor messages, tools and options of it."""
    says(*["Hello<turn|>"] * 20)
    loop, where = threading.get_ident(), set()
    read, made = module.bounded_loads, caller.options

    def noted(function):
        def call(*args, **how):
            where.add((function.__name__, threading.get_ident()))
            return function(*args, **how)

        return call

    monkeypatch.setattr(module, "bounded_loads", noted(read))
    monkeypatch.setattr(caller, "options", noted(made))
    for place, name in ((fields, "as_object"), (message_forms, "_message_in")):
        monkeypatch.setattr(place, name, noted(getattr(place, name)))
    app = GemmaJaxApp(ServedModels(("m",)), readiness=Readiness(()))
    for path, whole in WHOLE.items():
        where.clear()
        await answered(app, path, json.dumps(whole).encode())
        assert where
        assert loop not in {thread for _, thread in where}, path


async def test_a_turn_is_over_when_the_prompt_is_made(says):
    """While its answer comes, others are read."""
    says()  # which never answers
    app = GemmaJaxApp(ServedModels(("m",)), readiness=Readiness(()))
    told = {"model": "m", "messages": [{"role": "user", "content": " " * (LARGE + 1) + "Hi"}]}
    asking = [
        asyncio.create_task(answered(app, "/v1/chat/completions", json.dumps(told).encode()))
        for _ in range(LARGE_AT_ONCE + 2)
    ]
    while len(process.engine().requests) < len(asking) or app._bodies._large:  # noqa: ASYNC110  threads do this
        await asyncio.sleep(0.001)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
