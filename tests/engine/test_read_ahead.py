"""Prompts that are read before anybody asks: they change no answer, keep nobody waiting, and leave what they read."""

from __future__ import annotations

from contextlib import suppress

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.loop.admission import WORTH_WAITING
from langchain_gemma_jax.errors import CancelledRequestError
from tests.engine.tiny import BATCH, LADDERS, settle, text
from tests.waiting import until

ONE = Sampling(max_tokens=1, ignore_eos=True)


def greedy(count: int) -> Sampling:
    return Sampling(max_tokens=count, ignore_eos=True)


@pytest.mark.long
def test_what_was_read_ahead_is_known_and_answers_stay_those_of_cold_runs(engine_of, tiny_model, cold, rng):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    for _ in range(6):
        known, asked = text(rng, rng.randint(20, 80)), text(rng, rng.randint(1, 8))
        engine.submit(served, known, ONE, ahead=True).result()
        done = engine.submit(served, [*known, *asked], greedy(5)).result()
        assert done.reused_tokens >= len(known) - 1
        cold.expect([*known, *asked], done)


@pytest.mark.long
def test_it_waits_while_others_run_and_makes_way_for_who_needs_its_place(engine_of, tiny_model, cold, rng):
    engine = engine_of(ladders=BATCH)
    served = engine.serve(tiny_model)
    busy = [text(rng, 9) for _ in range(8)]
    running = [engine.submit(served, prompt, greedy(100)) for prompt in busy[:7]]
    until(lambda: sum(each.running for each in engine.live().requests) == 7)
    ahead = engine.submit(served, text(rng, 60), ONE, ahead=True)
    until(lambda: sum(each.running for each in engine.live().requests) == 8 or all(each.done for each in running))
    last = engine.submit(served, busy[7], greedy(5))  # all rows are taken: that of the other one is for it
    cold.expect(busy[7], last.result())
    for prompt, each in zip(busy, running, strict=False):
        cold.expect(prompt, each.result())
    with suppress(CancelledRequestError):  # it made way, unless all others had ended before
        ahead.result()
    settle(engine)
    assert engine.live().requests == ()


@pytest.mark.long
def test_who_asks_while_it_is_read_waits_for_it_and_does_not_read_it_twice(engine_of, tiny_model, cold, rng):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    for _ in range(5):
        known, before = text(rng, 100), engine.report().prefilled_tokens
        ahead = engine.submit(served, known, ONE, ahead=True)
        done = engine.submit(served, [*known, *text(rng, 3)], greedy(3)).result()
        ahead.result()
        read = engine.report().prefilled_tokens - before
        # Who asks when little of it is left to read does not wait for that.
        assert read < len(known) + 3 + WORTH_WAITING, "neither reads all of it again"
        assert done.prompt_tokens == 103


def test_cancelling_leaves_nothing_that_runs(engine_of, tiny_model, rng):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    for _ in range(5):
        ahead = engine.submit(served, text(rng, 100), ONE, ahead=True)
        ahead.cancel()
        with pytest.raises(CancelledRequestError):
            ahead.result()
    settle(engine)
    assert engine.live().requests == ()
    assert all(not any(pool.busy) for _, pool in engine.live().pools)
