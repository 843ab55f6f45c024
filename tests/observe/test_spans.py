"""Spans of the engine stand under the span that a request was asked in, with the times that the report has."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax.engine.base.events import ModelLoaded, ProgramMade
from langchain_gemma_jax.errors import DeadlineError
from tests.engine.faults_support import greedy

pytest.importorskip("opentelemetry.sdk", reason="an extra")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from langchain_gemma_jax.observe.spans import trace_engine


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


@pytest.fixture
def tracer(provider):
    return provider.get_tracer("the user's")


def test_where_a_requests_time_went_is_under_the_span_that_it_was_asked_in(
    running_of, tiny_model, provider, exporter, tracer
):
    engine = running_of()
    served = engine.serve(tiny_model)
    stop = trace_engine(provider)
    with tracer.start_as_current_span("chat") as chat:
        done = engine.submit(served, [60, 61, 62], greedy(5), app="agent", scope="a tenant").result()
    stop()
    engine.submit(served, [60], greedy(1)).result()
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"chat", "queue", "prefill", "decode"}
    for name in ("queue", "prefill", "decode"):
        assert spans[name].parent.span_id == chat.get_span_context().span_id
        assert spans[name].context.trace_id == chat.get_span_context().trace_id
        assert spans[name].kind is SpanKind.INTERNAL
        assert spans[name].attributes["gemma_jax.app"] == "agent"
        assert "tenant" not in str(spans[name].attributes)
    seconds = {name: (span.end_time - span.start_time) / 1e9 for name, span in spans.items()}
    assert seconds["queue"] == pytest.approx(done.timings.queued_s, abs=1e-3)
    assert seconds["prefill"] == pytest.approx(done.timings.prefill_s, abs=1e-3)
    decoded = done.timings.total_s - done.timings.queued_s - done.timings.prefill_s
    assert seconds["decode"] == pytest.approx(decoded, abs=1e-3)
    assert spans["chat"].start_time <= spans["queue"].start_time <= spans["decode"].end_time <= spans["chat"].end_time
    assert spans["decode"].attributes["gemma_jax.tokens.generated"] == 5


def test_compiles_and_loads_meanwhile_are_there_too(running_of, tiny_model, provider, exporter, tracer):
    engine = running_of()
    served = engine.serve(tiny_model)
    stop = trace_engine(provider)
    engine.events.publish(ModelLoaded(served.name, 0.5))  # for somebody else, before
    with tracer.start_as_current_span("chat"):
        engine.events.publish(ModelLoaded(served.name, 0.001))
        generation = engine.submit(served, [60, 61, 62], greedy(30))
        pieces = iter(generation)
        next(pieces)
        engine.events.publish(ProgramMade(served.name, "step", 0.001, fetched=False))
        engine.events.publish(ProgramMade("another model", "step", 0.001, fetched=False))
        assert len([*pieces]) > 1
    stop()
    names = [span.name for span in exporter.get_finished_spans()]
    assert sorted(names) == ["chat", "compile", "decode", "load", "prefill", "queue"]


def test_each_request_of_many_at_once_has_its_own_parent(running_of, tiny_model, provider, exporter, tracer):
    engine = running_of()
    served = engine.serve(tiny_model)
    stop = trace_engine(provider)

    def ask(number: int) -> int:
        with tracer.start_as_current_span("chat", attributes={"number": number}) as span:
            engine.submit(served, [60 + number, 61], greedy(3), app=f"app {number}").result()
            return span.get_span_context().span_id

    with ThreadPoolExecutor(8) as threads:
        parents = list(threads.map(ask, range(24)))
    stop()
    children = [span for span in exporter.get_finished_spans() if span.name != "chat"]
    assert len(children) == 3 * 24
    assert all(span.attributes["gemma_jax.app"] == f"app {parents.index(span.parent.span_id)}" for span in children)


def test_without_a_span_nothing_is_made_and_a_failure_is_said(running_of, tiny_model, provider, exporter, tracer):
    engine = running_of()
    served = engine.serve(tiny_model)
    stop = trace_engine(provider)
    engine.submit(served, [60, 61], greedy(2)).result()
    with tracer.start_as_current_span("chat"), pytest.raises(DeadlineError):
        engine.submit(served, [60, 61], greedy(2), timeout=0).result()
    while engine.report().failed == 0:
        time.sleep(0.01)
    stop()
    (queue,) = [span for span in exporter.get_finished_spans() if span.name != "chat"]
    assert queue.name == "queue"
    # Whoever looks first says it: the engine that time is up, or the caller that nobody waits any more.
    assert queue.attributes["error.type"] in {"DeadlineError", "CancelledRequestError"}
    assert queue.status.status_code is StatusCode.ERROR


def test_an_exporter_that_hangs_or_raises_holds_up_no_request(running_of, tiny_model, tracer):
    release = threading.Event()

    class Slow(SpanExporter):
        def export(self, _):
            release.wait(300)  # longer than a test may take, if somebody waited for it
            raise OSError("the collector is gone")

        def shutdown(self):
            """Nothing is to be done."""

    slow = TracerProvider()
    slow.add_span_processor(SimpleSpanProcessor(Slow()))
    engine = running_of()
    served = engine.serve(tiny_model)
    stop = trace_engine(slow)
    with tracer.start_as_current_span("chat"):
        for _ in range(3):
            assert engine.submit(served, [60, 61], greedy(2)).result().generated_tokens == 2
    release.set()
    stop()


@pytest.mark.long
def test_langchains_own_span_is_the_parent_and_the_only_one_of_the_call(running_of, provider, exporter, chat_folder):
    langchain = pytest.importorskip("opentelemetry.instrumentation.genai.langchain", reason="an extra of dev")
    from langchain_gemma_jax import ChatGemmaJax

    running_of()
    instrumentor = langchain.LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    stop = trace_engine(provider)
    try:
        llm = ChatGemmaJax(model=str(chat_folder), max_tokens=4, app="agent")
        llm.invoke("Hi")
        asyncio.run(llm.ainvoke("Ho"))
    finally:
        stop()
        instrumentor.uninstrument()
    spans = exporter.get_finished_spans()
    calls = [span for span in spans if span.name.startswith("chat")]
    assert len(calls) == 2
    for call in calls:
        children = [s for s in spans if s.parent is not None and s.parent.span_id == call.context.span_id]
        assert {"queue", "prefill", "decode"} <= {span.name for span in children}
        assert not any(span.kind is SpanKind.CLIENT for span in children)
    assert any(span.name == "load" for span in spans)
