"""The mailbox: in order, to threads and event loops, and the end to everybody."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from langchain_gemma_jax.engine.requests.mailbox import Mailbox, waker_of
from tests.waiting import LONG


def test_what_is_put_comes_out_in_order():
    box = Mailbox[int]()
    for item in range(5):
        box.put(item)
    assert [box.get() for _ in range(5)] == list(range(5))


def test_a_reader_waits_as_long_as_it_said():
    with pytest.raises(TimeoutError):
        Mailbox[int]().get(0.05)


async def test_an_event_loop_waits_as_long_as_it_said():
    with pytest.raises(TimeoutError):
        await Mailbox[int]().aget(0.05)


async def test_what_is_there_is_delivered_even_without_time():
    box = Mailbox[int]()
    box.put(1)
    assert await box.aget(0.0) == 1
    box.put(2)
    assert box.get(0.0) == 2


async def test_a_waiting_event_loop_is_woken_by_another_thread():
    box = Mailbox[int]()
    waiting = asyncio.create_task(box.aget())
    await asyncio.sleep(0.01)
    threading.Thread(target=box.put, args=(7,)).start()
    assert await asyncio.wait_for(waiting, LONG) == 7


def test_every_reader_in_a_thread_learns_of_the_end():
    box = Mailbox[str]()
    got: list[str] = []
    readers = [threading.Thread(target=lambda: got.append(box.get(LONG))) for _ in range(5)]
    for reader in readers:
        reader.start()
    time.sleep(0.05)
    box.put("end", last=True)
    for reader in readers:
        reader.join(LONG)
    assert got == ["end"] * 5


async def test_every_reader_in_event_loops_learns_of_the_end():
    box = Mailbox[str]()
    here = [asyncio.create_task(box.aget(LONG)) for _ in range(3)]
    elsewhere = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(box.aget(LONG))))
    await asyncio.sleep(0.1)
    box.put("end", last=True)
    assert await asyncio.gather(*here, elsewhere) == ["end"] * 4


def test_nothing_comes_behind_the_end():
    box = Mailbox[str]()
    box.put("piece")
    box.put("end", last=True)
    box.put("ghost")
    assert [box.get(), box.get(), box.get()] == ["piece", "end", "end"]


async def test_a_reader_that_was_cancelled_takes_nothing_along():
    box = Mailbox[int]()
    for _ in range(100):
        waiting = asyncio.create_task(box.aget())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert len(box._waiters) <= 1, "those who left are forgotten"
    box.put(3)
    assert await box.aget(LONG) == 3


def test_a_loop_that_was_closed_while_it_waited_harms_nobody():
    box = Mailbox[int]()
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(box.aget())
    loop.run_until_complete(asyncio.sleep(0.01))
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    box._waiters.append((waker_of(loop), loop.create_future()))
    loop.close()
    box.put(1)
    assert box.get(LONG) == 1


async def test_many_that_are_woken_in_a_row_disturb_their_event_loop_once(monkeypatch):
    loop, disturbed = asyncio.get_running_loop(), []
    plain = loop.call_soon_threadsafe

    def noted(*call: object) -> object:
        disturbed.append(call)
        return plain(*call)

    monkeypatch.setattr(loop, "call_soon_threadsafe", noted)
    boxes = [Mailbox[int]() for _ in range(8)]
    for rounds in (1, 2):
        waiting = [asyncio.ensure_future(box.aget()) for box in boxes]
        await asyncio.sleep(0)
        for number, box in enumerate(boxes):  # as the owner thread does behind a step
            box.put(number)
        assert await asyncio.gather(*waiting) == list(range(8))
        assert len(disturbed) == rounds


def test_nobody_who_waits_is_forgotten_however_threads_take_turns():
    boxes, rounds = [Mailbox[int]() for _ in range(6)], 400

    def put() -> None:
        for number in range(rounds):
            for box in boxes:
                box.put(number)

    async def read(box: Mailbox[int]) -> list[int]:
        return [await box.aget(LONG) for _ in range(rounds)]

    async def all_of_them() -> list[list[int]]:
        return await asyncio.gather(*map(read, boxes))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=put)
    try:
        thread.start()
        assert asyncio.run(all_of_them()) == [list(range(rounds))] * len(boxes)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
