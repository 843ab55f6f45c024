"""Counters and the report made of them."""

from __future__ import annotations

import dataclasses
import threading

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.events import (
    Events,
    Finished,
    ModelEvicted,
    ModelLoaded,
    ProgramMade,
    Refused,
    StepRouted,
    Timings,
)
from langchain_gemma_jax.engine.base.metrics import (
    MOST_PROGRAMS,
    MOST_SERIES,
    CompileCounter,
    CompileTime,
    Histogram,
    Metrics,
    ModelCounts,
    ModelTally,
    ProgramName,
    RouteTally,
    together,
)


def finished(seconds: float, **changes) -> Finished:
    timings = Timings(0.0, 0.0, seconds, seconds)
    made = Finished("m", "", "", "stop", False, 3, 0, 2, 0, 0, 0, 0, timings)
    return dataclasses.replace(made, **changes)


def test_a_copy_stays_what_it_was():
    metrics = Metrics(requests=3)
    found = metrics.copied()
    metrics.finished(finished(1.0, failed=True))
    assert (found.requests, found.failed) == (3, 0)
    assert (metrics.requests, metrics.failed) == (4, 1)


def test_the_first_tokens_time_is_the_middle_one_of_the_latest_requests():
    metrics = Metrics()
    assert metrics.first_token_seconds() == (0.0, 0.0)
    for seconds in [9.0] * 2000 + [1.0] * 600 + [3.0]:
        metrics.finished(finished(seconds))
    metrics.finished(finished(99.0, generated_tokens=0))
    metrics.finished(finished(99.0, failed=True))
    assert metrics.first_token_seconds() == (1.0, 9.0)


def test_routed_steps_are_counted_from_any_thread():
    tally = RouteTally()
    records = [StepRouted("light", switched=True, escalated=False), StepRouted("heavy", switched=True, escalated=True)]
    threads = [threading.Thread(target=lambda: [tally.add(each) for each in records * 200]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tally.steps, tally.switches, tally.escalations) == ({"light": 800, "heavy": 800}, 1600, 800)


def compile_one(number: float) -> None:
    jax.jit(lambda x: x * number)(jnp.ones(3, jnp.float32)).block_until_ready()


def test_compiles_are_counted_in_the_thread_that_is_watched_until_it_stops():
    ones = jnp.ones(3, jnp.float32)
    counter = CompileCounter()
    counter.watch_this_thread()
    try:
        jax.jit(lambda x: x * 1.25)(ones)
        assert counter.compiles == 1
        assert counter.seconds > 0
        other = threading.Thread(target=compile_one, args=(1.5,))
        other.start()
        other.join()
        assert counter.compiles == 1
        again = jax.jit(lambda x: x * 1.75)
        again(ones)
        again(ones)
        assert counter.compiles == 2
    finally:
        counter.leave_this_thread()
    jax.jit(lambda x: x * 2.25)(ones)
    assert counter.compiles == 2
    counter.leave_this_thread()


def test_what_the_persistent_cache_serves_is_not_counted():
    counter = CompileCounter()
    counter.watch_this_thread()
    try:
        jax.monitoring.record_event_duration_secs(CompileCounter.COMPILED, 0.5)
        assert counter.compiles == 1
        jax.monitoring.record_event(CompileCounter.SERVED)
        assert counter.compiles == 0
    finally:
        counter.leave_this_thread()


def test_a_histogram_counts_values_up_to_each_bound():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        histogram.add(value)
    found = histogram.copied()
    assert (found.counts, found.total, found.values) == ((2, 1, 1), 12.0, 4)
    assert [found.quantile(share) for share in (0.5, 0.75, 1.0)] == [1.0, 2.0, float("inf")]
    assert together((), (1.0,)).quantile(0.9) == 0.0
    assert found.plus(found).counts == (4, 2, 2)


def test_what_happens_to_models_is_counted_by_model_from_any_thread():
    events = Events()
    tally = ModelTally(events)

    def happen() -> None:
        for _ in range(200):
            events.publish(ProgramMade("a", "step", 0.5, fetched=False, sizes=(1, 512)))
            events.publish(ProgramMade("a", "step", 0.25, fetched=True))
            events.publish(ModelLoaded("b", 2.0))
            events.publish(ModelEvicted("b", 10, 0.1))
            events.publish(Refused(1, "b", "", ""))

    threads = [threading.Thread(target=happen) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.by_model["a"] == ModelCounts(compiles=800, compile_s=400.0, fetches=800, fetch_s=200.0)
    assert tally.by_model["b"] == ModelCounts(loads=800, load_s=1600.0, evictions=800)
    assert tally.refused == 800
    assert tally.refused_by_model == {"b": 800}
    assert tally.by_program == {ProgramName("a", "step", "1/512"): CompileTime(800, 400.0)}
    for number in range(2 * MOST_PROGRAMS):
        events.publish(ProgramMade("a", "read", 1.0, fetched=False, sizes=(number,)))
    assert len(tally.by_program) == MOST_PROGRAMS + 1
    assert sum(spent.compiles for spent in tally.by_program.values()) == 800 + 2 * MOST_PROGRAMS
    assert str(ProgramName("a", "empty", "")) == "a empty"
    assert len(tally.compiles) == 256
    for number in range(500):
        events.publish(ModelLoaded(f"model {number}", 1.0))
    assert len(tally.by_model) == MOST_SERIES + 1
