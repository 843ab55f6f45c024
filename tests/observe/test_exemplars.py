"""A point on a panel leads to a trace: of the request that was counted in its bucket last."""

from __future__ import annotations

import dataclasses

import pytest

from langchain_gemma_jax.engine.base.events import Finished, Timings
from langchain_gemma_jax.engine.base.metrics import MOST_SERIES
from langchain_gemma_jax.observe.metrics.collector import MetricsCollector
from langchain_gemma_jax.observe.metrics.exemplars import Exemplars
from langchain_gemma_jax.observe.spans import trace_engine
from tests.engine.faults_support import greedy
from tests.observe.scrapes import client

FIRST, WHOLE = "gemma_jax_time_to_first_token_seconds", "gemma_jax_request_seconds"


def finished(first: float, whole: float, **changes: object) -> Finished:
    made = Finished("m", "", "app", "stop", False, 3, 0, 2, 0, 0, 0, 0, Timings(0.0, 0.0, first, whole))
    return dataclasses.replace(made, **changes)


def test_each_bucket_has_the_latest_of_its_requests_and_there_are_never_too_many():
    known = Exemplars()
    for trace, first in (("a", 0.15), ("b", 0.16), ("c", 3.0)):
        known.note(finished(first, 2 * first), trace)
    known.note(finished(0.15, 0.3, failed=True), "of no histogram")
    found = known.of(FIRST, ("m", "", "app", "steady"))
    assert sorted((each.trace, each.value) for each in found.values()) == [("b", 0.16), ("c", 3.0)]
    assert [each.trace for each in known.of(WHOLE, ("m", "", "app", "steady")).values()] == ["b", "c"]
    assert known.of(FIRST, ("m", "", "app", "cold")) == {}
    for number in range(10 * MOST_SERIES):
        known.note(finished(0.1, 0.2, app=str(number)), "d")
    assert known.of(FIRST, ("m", "", "app", "steady")) == {}
    assert known.of(FIRST, ("m", "", f"{10 * MOST_SERIES - 1}", "steady"))


def test_a_scrape_by_openmetrics_links_the_trace_of_a_request(running_of, tiny_model):
    pytest.importorskip("opentelemetry.sdk", reason="an extra")
    from opentelemetry.sdk.trace import TracerProvider
    from prometheus_client.openmetrics.exposition import generate_latest

    provider = TracerProvider()
    engine = running_of(guards="warn")
    served = engine.serve(tiny_model)
    stop = trace_engine(provider)
    with provider.get_tracer("test").start_as_current_span("a call") as span:
        engine.submit(served, [60, 61], greedy(2), app="linked").result()
        trace = f"{span.get_span_context().trace_id:032x}"
    engine.submit(served, [70, 71], greedy(2), app="in no trace").result()
    engine._owner.call(lambda: None)
    stop()
    registry = client.CollectorRegistry()
    registry.register(MetricsCollector())
    linked = [line for line in generate_latest(registry).decode().splitlines() if " # {" in line]
    assert {line.partition("_bucket")[0] for line in linked} == {FIRST, WHOLE}
    assert all(f'trace_id="{trace}"' in line and 'app="linked"' in line for line in linked)
    assert "# {" not in client.generate_latest(registry).decode(), "the older form has no exemplars"
