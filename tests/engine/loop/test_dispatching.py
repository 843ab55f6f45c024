"""Work is handed to the device in turns: nobody starves, and nothing runs on for those who left."""

from __future__ import annotations

import gc
import threading
import time

import jax
import pytest

from langchain_gemma_jax.engine.base.events import PromptRead
from langchain_gemma_jax.errors import CancelledRequestError
from tests.engine.faults_support import SMALL, Holdings, assert_works, greedy, idle_memory_dropped, outcome, slowed
from tests.engine.tiny import settle, text
from tests.waiting import LONG


@pytest.fixture
def small(engine_of, tiny_model):
    """An engine of one and four rows whose programs are compiled, and what it holds while idle."""
    engine = engine_of(ladders=SMALL, max_waiting=2000)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    assert_works(engine, served)
    idle_memory_dropped(engine)
    gc.collect()
    return engine, served, Holdings.now()


@pytest.mark.long
@pytest.mark.parametrize("way", ["cancel", "close", "drop"])
def test_decoding_stops_within_one_dispatch(small, way):
    engine, served, _ = small
    left = threading.Event()
    steps = []

    def count(key: tuple[object, ...]) -> None:
        if key[0] == "step" and left.is_set():
            steps.append(key)

    with slowed(0.02, count):
        generation = engine.submit(served, [10, 11], greedy(100))
        pieces = iter(generation)
        for _ in range(3):
            next(pieces)
        if way == "cancel":
            generation.cancel()
            left.set()
            with pytest.raises(CancelledRequestError):
                list(pieces)
        elif way == "close":
            pieces.close()  # type: ignore[attr-defined]
        else:
            del pieces, generation
        left.set()
        settle(engine)
        time.sleep(0.1)
    assert len(steps) <= 2, "the one that was being handed over, and one more if that had just been"
    assert engine.report().running == 0
    assert_works(engine, served)


def test_reading_is_told_chunk_by_chunk_and_stops_within_one(small, rng, monkeypatch):
    """No more than one chunk is ahead of what was read, so a request that is cancelled reads no other one."""
    engine, served, _ = small
    told: list[PromptRead] = []
    waits: list[object] = []
    leave = engine.events.subscribe(PromptRead, told.append)
    with monkeypatch.context() as patched:
        patched.setattr(jax, "block_until_ready", waits.append)
        engine.submit(served, text(rng, 100), greedy(1), scope="mine").result()
    assert [(each.tokens, each.total) for each in told] == [(min(end, 100), 100) for end in range(16, 113, 16)]
    assert {(each.model, each.scope, each.number) for each in told} == {(served.name, "mine", told[0].number)}
    assert len(waits) == len(told) - 2, "the last chunk brings a token, which is waited for anyway"
    leave()
    told.clear()

    there, begun = threading.Event(), []

    def cancel_the_second(record: PromptRead) -> None:
        told.append(record)
        assert there.wait(LONG)
        if len(told) == 2:
            begun[0].cancel()

    leave = engine.events.subscribe(PromptRead, cancel_the_second)
    begun.append(engine.submit(served, text(rng, 120), greedy(1)))
    there.set()
    with pytest.raises(CancelledRequestError):
        begun[0].result()
    settle(engine)
    leave()
    assert len(told) == 2
    assert_works(engine, served)


@pytest.mark.long
@pytest.mark.parametrize("hog", ["a long prompt", "a long answer", "three long answers"])
def test_a_short_request_does_not_starve(small, rng, hog):
    engine, served, _ = small
    short = text(rng, 4)

    programs: list[object] = []

    def solo(scope: str) -> int:
        """How many programs run until it is answered."""
        before = len(programs)
        engine.submit(served, short, greedy(3), scope=scope).result()
        return len(programs) - before

    with slowed(0.01, programs.append):
        alone = solo("alone")
        if hog == "a long prompt":
            hogs = [engine.submit(served, text(rng, 120), greedy(2))]
        else:
            hogs = [engine.submit(served, text(rng, 4), greedy(100)) for _ in range(3 if "three" in hog else 1)]
        beside = solo("beside")
        assert sum(isinstance(outcome(generation), Exception) for generation in hogs) == 0
    assert beside < 6 * alone
