"""A generation in a caller's hands: read once, in one of four ways, ended by dropping it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import traceback

import pytest

from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import FinishReason, Piece, Request, RequestSpec
from langchain_gemma_jax.errors import CancelledRequestError, DeadlineError, DeviceFailedError


class Letters:
    def push(self, token_id: int) -> str:
        return chr(token_id)

    def finish(self) -> str:
        return ""


def request(**changes: object) -> Request:
    asked = RequestSpec("m", Prompt.of_tokens([1, 2]), Sampling(), 0, frozenset(), 10, **changes)  # type: ignore[arg-type]
    return Request(asked, Letters())


def ended(pieces: int = 2, **changes: object) -> tuple[Request, Generation]:
    made = request(**changes)
    for index in range(pieces):
        made.mailbox.put(Piece((65 + index,), chr(65 + index)))
        made.progress.context.append(65 + index)
        made.progress.text.append(chr(65 + index))
    made.mailbox.put(made.completion(FinishReason.LENGTH, None, time.monotonic()), last=True)
    return made, Generation(made)


def test_pieces_come_first_and_the_whole_stays_to_be_asked_for():
    _, generation = ended()
    assert not generation.done
    assert [piece.text for piece in generation] == ["A", "B"]
    assert generation.done
    assert generation.result().text == generation.result().text == "AB"
    assert list(generation) == []


async def test_the_same_in_an_event_loop():
    _, generation = ended()
    assert [piece.text async for piece in generation] == ["A", "B"]
    assert (await generation).text == (await generation.aresult()).text == "AB"


def test_an_iteration_that_ends_early_stops_the_work():
    made, generation = ended()
    for _ in generation:
        break
    assert made.cancelled.is_set()


def test_an_iterator_that_is_dropped_stops_the_work_without_a_collection():
    gc.disable()
    try:
        made, generation = ended()
        pieces = iter(generation)
        next(pieces)
        del pieces, generation
        assert made.cancelled.is_set()
    finally:
        gc.enable()


def test_a_generation_that_was_never_read_stops_when_it_is_dropped():
    gc.disable()
    try:
        made, generation = ended()
        del generation
        assert made.cancelled.is_set()
    finally:
        gc.enable()


def test_an_iterator_keeps_the_work_alive():
    made, generation = ended()
    pieces = iter(generation)
    del generation
    assert not made.cancelled.is_set()
    assert next(pieces).text == "A"


async def test_closing_an_async_iteration_stops_the_work():
    made, generation = ended()
    pieces = generation.__aiter__()
    await anext(pieces)
    await pieces.aclose()  # type: ignore[attr-defined]
    assert made.cancelled.is_set()


async def test_cancelling_the_task_that_waits_stops_the_work():
    made = request()
    task = asyncio.create_task(Generation(made).aresult())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made.cancelled.is_set()


def test_an_error_is_raised_anew_each_time_it_is_asked_for():
    made = request()
    failure = DeviceFailedError("broken")
    failure.__cause__ = KeyError("why")
    made.mailbox.put(failure, last=True)
    generation = Generation(made)
    lengths = []
    for _ in range(3):
        with pytest.raises(DeviceFailedError, match="broken") as raised:
            generation.result()
        assert raised.value is not failure
        assert raised.value.__cause__ is failure.__cause__
        lengths.append(len(traceback.extract_tb(raised.value.__traceback__)))
    assert lengths[1] == lengths[2], "a traceback does not grow with each reader"
    assert failure.__traceback__ is None


def test_every_reader_in_a_thread_comes_to_the_end():
    made = request()
    generation = Generation(made)
    results: list[str] = []
    readers = [threading.Thread(target=lambda: results.append(generation.result().text)) for _ in range(4)]
    for reader in readers:
        reader.start()
    time.sleep(0.05)
    made.progress.text.append("A")
    made.mailbox.put(Piece((65,), "A"))
    made.mailbox.put(made.completion(FinishReason.LENGTH, None, 0.0), last=True)
    for reader in readers:
        reader.join()
    assert results == ["A"] * 4


@pytest.mark.parametrize("way", ["result", "iteration", "await", "async iteration"])
def test_a_deadline_is_kept_while_nothing_comes(way):
    made = request(deadline=time.monotonic() + 0.1)
    generation = Generation(made)

    async def all_pieces() -> list[Piece]:
        return [piece async for piece in generation]

    read = {
        "result": generation.result,
        "iteration": lambda: list(generation),
        "await": lambda: asyncio.run(generation.aresult()),
        "async iteration": lambda: asyncio.run(all_pieces()),
    }[way]
    with pytest.raises(DeadlineError, match="0 tokens generated after a prompt of 2"):
        read()
    assert made.cancelled.is_set(), "the owner thread hears of it"
    made.mailbox.put(CancelledRequestError("late"), last=True)
    with pytest.raises(DeadlineError):
        generation.result()


def test_what_came_before_the_deadline_is_delivered_after_it():
    made, generation = ended(deadline=time.monotonic() - 1)
    assert generation.result().text == "AB"
    assert made.overdue(made.asked.deadline)


def test_cancelling_twice_and_late_is_harmless():
    made, generation = ended()
    assert generation.result().text == "AB"
    generation.cancel()
    generation.cancel()
    assert generation.result().text == "AB"
    assert made.cancelled.is_set()


def test_a_caller_that_wants_the_whole_is_not_woken_for_pieces():
    made, generation = ended()
    assert made.streamed
    generation.result()
    assert not made.streamed


async def test_the_same_for_one_that_awaits_the_whole():
    made, generation = ended()
    await generation
    assert not made.streamed


def test_one_that_streams_gets_every_piece_whoever_waits_for_the_whole():
    made, generation = ended()
    pieces = iter(generation)
    next(pieces)
    thread = threading.Thread(target=generation.result)
    thread.start()
    thread.join()
    assert made.streamed
