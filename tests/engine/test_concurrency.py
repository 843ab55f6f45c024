"""Many callers at once: threads, event loops, those who leave, those who wait."""

from __future__ import annotations

import asyncio
import gc
import random
import threading

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import BusyError, CancelledRequestError, DeadlineError
from tests.engine.faults_support import (
    SMALL,
    Holdings,
    assert_holds,
    assert_works,
    drawn,
    greedy,
    idle_memory_dropped,
    in_threads,
    slowed,
)
from tests.engine.tiny import settle, text
from tests.loop_turns import SHORT, turns_of
from tests.waiting import until


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


def mixed(rng, count):
    """Prompts of all lengths, some of which share beginnings, and options of all kinds."""
    beginnings = [text(rng, length) for length in (5, 17, 40)]
    requests = []
    for index in range(count):
        prompt = [*(rng.choice(beginnings) if rng.random() < 0.5 else []), *text(rng, rng.randint(1, 30))]
        length = rng.randint(1, 12)
        kind = rng.randrange(4)
        if kind == 0:
            options = drawn(length, seed=index, top_k=rng.choice([0, 5]), top_p=rng.choice([1.0, 0.9]))
        elif kind == 1:
            options = greedy(length, stop_ids=tuple(range(100, 160)), stop=("A", "zz"))
        elif kind == 2:
            options = greedy(length, repetition_penalty=1.3, logit_bias={50: 3.0})
        else:
            options = greedy(length)
        requests.append((prompt, options, rng.choice(["", "a", "b"])))
    return requests


@pytest.mark.long
@pytest.mark.parametrize("each", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_what_32_threads_get_is_what_one_gets(small, rng, each):
    engine, served, before = small
    requests = mixed(rng, 32 * each)
    plain = [engine.submit(served, prompt, options, scope=scope).result() for prompt, options, scope in requests]
    idle_memory_dropped(engine)

    def ask(thread: int) -> object:
        mine = requests[thread * each : (thread + 1) * each]
        shuffled = random.Random(thread).sample(range(each), each)
        found = {i: engine.submit(served, mine[i][0], mine[i][1], scope=mine[i][2]).result() for i in shuffled}
        return [found[i] for i in range(each)]

    together = [completion for found in in_threads(32, ask) for completion in found]
    differ = [
        index
        for index, (one, other) in enumerate(zip(plain, together, strict=True))
        if (one.ids, one.text, one.finish_reason, one.stop) != (other.ids, other.text, other.finish_reason, other.stop)
    ]
    print(f"{len(differ)} of {len(requests)} requests differ")  # noqa: T201
    assert not differ
    assert {completion.stop for completion in plain} - {None}, "some were stopped"
    report = engine.report()
    assert (report.running, report.waiting, report.failed) == (0, 0, 0)
    idle_memory_dropped(engine)
    assert_holds(before)
    assert_works(engine, served)


@pytest.mark.long
async def test_who_leaves_in_the_middle_changes_nothing_for_the_others(small, rng):
    engine, served, before = small
    prompts = [text(rng, rng.randint(2, 20)) for _ in range(100)]
    idle_memory_dropped(engine)
    plain = [engine.submit(served, prompt, greedy(15), scope="plain").result().ids for prompt in prompts]
    leavers = rng.sample(range(100), 20)
    cancelled, closed = set(leavers[:10]), set(leavers[10:])
    leaves_at = {index: rng.randint(1, 12) for index in leavers}
    left = dict.fromkeys(leavers, 0)

    async def read(index: int) -> tuple[int, ...]:
        generation = engine.submit(served, prompts[index], greedy(15))
        pieces, ids = generation.__aiter__(), []
        async for piece in pieces:
            ids += piece.ids
            if index in closed and len(ids) >= leaves_at[index]:
                await pieces.aclose()
                break
            if index in cancelled and len(ids) >= leaves_at[index]:
                tasks[index].cancel()  # which arrives where it waits next
        left[index] = len(ids)
        return tuple(ids)

    tasks = {index: asyncio.create_task(read(index)) for index in range(100)}
    with slowed(0.0005):
        results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    for index, result in enumerate(results):
        if index in cancelled:
            assert isinstance(result, asyncio.CancelledError) or result == plain[index]
        elif index in closed:
            assert result == plain[index][: left[index]]
        else:
            assert result == plain[index]
    await asyncio.to_thread(settle, engine)
    report = engine.report()
    assert (report.running, report.waiting) == (0, 0)
    assert 15 <= report.failed <= 20, "some may have had all their tokens when they left"
    idle_memory_dropped(engine)
    await asyncio.to_thread(assert_works, engine, served)
    idle_memory_dropped(engine)
    now = Holdings.now()
    assert now.arrays == before.arrays
    # The event loop's own workers, which were called twice here: the second call may find the first one not idle yet.
    assert now.threads - before.threads <= 2


@pytest.mark.long
def test_iterators_that_wander_between_threads_and_are_dropped(small, rng):
    engine, served, before = small
    idle = engine.report().requests
    gc.disable()
    try:
        with slowed(0.0005):
            pieces = [iter(engine.submit(served, text(rng, 5), greedy(60))) for _ in range(200)]
            locks = [threading.Lock() for _ in pieces]

            def advance(thread: int) -> None:
                mine = random.Random(thread)
                for index in mine.sample(range(8), 8) + mine.sample(range(200), 12):
                    with locks[index]:
                        if index < 8:
                            next(pieces[index], None)
                        elif pieces[index] is not None and index % 2:
                            pieces[index] = None  # dropped, begun or not

            results = in_threads(16, advance)
            assert not any(results), results
            pieces.clear()
            found = engine.submit(served, [10, 11], greedy(1)).result()
            assert len(found.ids) == 1
        settle(engine)
        report = engine.report()
        assert (report.running, report.waiting, report.requests - idle) == (0, 0, 201)
        idle_memory_dropped(engine)
        assert_holds(before)
    finally:
        gc.enable()
    assert_works(engine, served)


@pytest.mark.long
def test_several_event_loops_at_once(small, rng):
    engine, served, before = small
    prompts = [text(rng, 8) for _ in range(24)]
    plain = [engine.submit(served, prompt, greedy(10), scope="plain").result().ids for prompt in prompts]

    async def all_of(mine: list[list[int]]) -> list[tuple[int, ...]]:
        found = await asyncio.gather(*(engine.submit(served, prompt, greedy(10)).aresult() for prompt in mine))
        return [completion.ids for completion in found]

    results = in_threads(4, lambda index: asyncio.run(all_of(prompts[index::4])))
    assert [results[index % 4][index // 4] for index in range(24)] == plain
    idle_memory_dropped(engine)
    assert_holds(before)


@pytest.mark.long
async def test_an_event_loop_is_not_held_up(small, rng):
    engine, served, _ = small
    prompts = [text(rng, 40) for _ in range(24)]

    async def ask() -> None:
        for _ in range(2):
            await asyncio.gather(*(engine.submit(served, prompt, greedy(40)).aresult() for prompt in prompts))

    found = await turns_of(ask())
    assert found.longest < SHORT
    assert not found.ran("langchain_gemma_jax/engine/device/")


@pytest.mark.long
def test_a_full_queue_refuses_at_once_and_finishes_what_it_took(engine_of, tiny_model, rng):
    engine = engine_of(ladders=SMALL, max_waiting=16)
    served = engine.serve(tiny_model)
    assert_works(engine, served)
    prompts = [text(rng, 6) for _ in range(26)]

    def ask(index: int) -> object:
        try:
            generation = engine.submit(served, prompts[index], greedy(20))
        except BusyError as error:
            return error
        return generation.result()

    with slowed(0.01):
        results = in_threads(26, ask)
    busy = [result for result in results if isinstance(result, BusyError)]
    done = [result for result in results if not isinstance(result, Exception)]
    assert busy
    assert len(busy) + len(done) == 26
    assert len(done) >= 16
    assert {len(completion.ids) for completion in done} == {20}
    assert "configure(max_waiting=...)" in str(busy[0])
    settle(engine)
    assert engine.report().waiting == 0
    generations = [engine.submit(served, prompt, greedy(2)) for prompt in prompts[:16]]
    assert all(len(generation.result().ids) == 2 for generation in generations), "every place is free again"


@pytest.mark.parametrize("kind", ["queued", "reading", "generating"])
def test_a_deadline_ends_a_request_wherever_it_is(small, rng, kind):
    engine, served, before = small
    with slowed(0.05):
        if kind == "queued":
            others = [engine.submit(served, text(rng, 3), greedy(60)) for _ in range(4)]
        prompt, limit = text(rng, 120 if kind == "reading" else 3), 1.5 if kind == "generating" else 0.3
        generation = engine.submit(served, prompt, greedy(8 if kind == "reading" else 100), timeout=limit)
        pieces = []
        with pytest.raises(DeadlineError, match=r"deadline passed \d+\.\d s after submission"):
            pieces.extend(iter(generation))
        assert bool(pieces) == (kind == "generating")
        if kind == "queued":
            for other in others:
                other.cancel()
        until(lambda: (engine.report().running, engine.report().waiting) == (0, 0))  # its row is free
    with pytest.raises(DeadlineError):
        generation.result()
    idle_memory_dropped(engine)
    assert_holds(before)
    assert_works(engine, served)


@pytest.mark.parametrize("kind", ["queued", "generating"])
def test_a_deadline_ends_a_request_that_nobody_reads(small, rng, kind):
    engine, served, before = small
    done = engine.report().requests
    with slowed(0.02):
        others = [engine.submit(served, text(rng, 3), greedy(100)) for _ in range(4 if kind == "queued" else 0)]
        unread = engine.submit(served, text(rng, 3), greedy(100), timeout=0.2)
        until(lambda: engine.report().requests > done)
        report = engine.report()
        assert (report.requests - done, report.running, report.waiting) == (1, len(others), 0)
        others.clear()
    with pytest.raises(DeadlineError):
        unread.result()
    settle(engine)
    idle_memory_dropped(engine)
    assert_holds(before)
    assert_works(engine, served)


def test_a_deadline_is_kept_and_the_report_true_while_a_program_is_compiled(small):
    engine, served, _ = small
    compiling, go_on = threading.Event(), threading.Event()

    def compile_for_long(key: tuple[object, ...]) -> None:
        if key[0] == "read" and not compiling.is_set():
            compiling.set()
            go_on.wait(300)

    with slowed(0.0, compile_for_long):
        first = engine.submit(served, [10, 11], greedy(3))
        assert compiling.wait()
        queued = engine.submit(served, [10, 12], greedy(3), timeout=0.2)
        with pytest.raises(DeadlineError):
            queued.result()

        async def wait() -> None:
            await engine.submit(served, [10, 13], greedy(3), timeout=0.2)

        with pytest.raises(DeadlineError):
            asyncio.run(wait())
        report = engine.report()
        assert (report.running, report.waiting) == (1, 2)
        go_on.set()
        assert len(first.result().ids) == 3
    settle(engine)
    assert (engine.report().running, engine.report().waiting) == (0, 0)
    assert_works(engine, served)


@pytest.mark.long
def test_nothing_leaks_and_nothing_compiles_over_200_requests(small, rng):
    engine, served, _ = small

    def some(count: int) -> None:
        for index in range(count):
            prompt, options, scope = mixed(rng, 1)[0]
            generation = engine.submit(served, prompt, options, scope=scope)
            if index % 10 == 3:
                generation.cancel()
            else:
                generation.result()
        idle_memory_dropped(engine)

    some(50)
    engine.warmup(served)
    gc.collect()
    before, compiles = Holdings.now(), engine.report().compiles
    some(200)
    assert_holds(before)
    assert engine.report().compiles == compiles
    assert_works(engine, served)


def test_cancelled_before_it_was_begun(small):
    engine, served, _ = small
    generation = engine.submit(served, [10, 11], Sampling(max_tokens=5))
    generation.cancel()
    for _ in range(2):
        with pytest.raises(CancelledRequestError):
            generation.result()
    assert_works(engine, served)
