"""Counters and the report made of them."""

from __future__ import annotations

import dataclasses
import threading

import jax
import jax.numpy as jnp
import pytest

from langchain_gemma_jax.engine.base.metrics import CompileCounter, Metrics, Report, snapshot


def report(**changes: object) -> Report:
    values: dict[str, object] = {field.name: 0 for field in dataclasses.fields(Report)}
    values |= {"kv_bytes_by_scope": {}, "guard_trips": {}, "models": (), "eviction_log": (), "routed": {}}
    return Report(**(values | changes))  # type: ignore[arg-type]


def test_a_snapshot_is_a_copy():
    metrics = Metrics(requests=3, guard_trips={"recompile": 1})
    found = snapshot(metrics)
    metrics.requests += 1
    metrics.guard_trips["recompile"] += 1
    assert found["requests"] == 3
    metrics.routed["light"] = 1
    assert found["guard_trips"] == {"recompile": 1}
    assert found["routed"] == {}
    of_all = {"first_tokens", "first_token_s", "longest_first_token_s"}
    assert set(found) ^ {field.name for field in dataclasses.fields(Metrics)} == of_all


def test_the_first_tokens_time_is_the_middle_one_of_the_latest_requests():
    metrics = Metrics()
    assert snapshot(metrics)["first_token_s"] == 0.0
    metrics.first_tokens += [9.0] * 2000 + [1.0] * 600 + [3.0]
    found = snapshot(metrics)
    assert (found["first_token_s"], found["longest_first_token_s"]) == (1.0, 9.0)
    assert "after 1.000 s, at most 9.000 s" in str(report(first_token_s=1.0, longest_first_token_s=9.0))


def test_shares_of_nothing_are_nothing():
    assert report().acceptance == 0.0
    assert report().host_share == 0.0


def test_shares():
    found = report(drafted_tokens=8, accepted_tokens=6, host_s=1.0, dispatch_s=2.0, device_s=1.0)
    assert found.acceptance == 0.75
    assert found.host_share == 0.25


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 * 2**30, "5.0 GiB"), (2**50, "1024.0 TiB")],
)
def test_sizes_are_readable(count, shown):
    assert f"KV                {shown} of" in str(report(kv_bytes=count)) or shown in str(report(kv_bytes=count))


def test_the_table_has_everything_that_happened():
    text = str(
        report(
            requests=7,
            failed=2,
            running=1,
            waiting=3,
            kv_bytes_by_scope={"b": 2048, "a": 1024},
            guard_trips={"recompile": 4},
            compiles=5,
            compile_s=1.25,
            cache_hits=6,
            cache_misses=8,
            cache_saved_s=9.75,
            routed={"heavy": 11},
            switches=2,
            escalations=1,
        )
    )
    assert "7 done, 2 of them failed, 1 run, 3 wait" in text
    assert text.index("scope 'a'") < text.index("scope 'b'")
    assert "guard recompile" in text
    assert "routed to heavy" in text
    assert "2 switches, 1 escalations" in text
    assert "4 trips" in text
    assert "5 in 1.2 s" in text


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
