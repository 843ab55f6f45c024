"""What Prometheus is told is what the report says, whatever happened; and it is never too much, or too late."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from xml.etree import ElementTree as ET

import pytest

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.events import Finished, Timings
from langchain_gemma_jax.engine.base.metrics import MOST_SERIES, Metrics
from langchain_gemma_jax.errors import EngineError
from langchain_gemma_jax.observe.metrics.collector import start_metrics_server
from langchain_gemma_jax.observe.metrics.families import families, scope_label
from tests.engine.api.test_report import report as report_of
from tests.engine.faults_support import greedy
from tests.observe.scrapes import samples


def mixed(engine, served, count: int) -> list:
    """Run requests of several applications and tenants, some of which fail, are cancelled or repeat themselves."""
    rng = random.Random("mixed requests")
    done = []

    def one(number: int) -> None:
        length = rng.choice((3, 8, 30))
        prompt = [50 + (number % 7), *range(60, 60 + length)]
        with suppress(EngineError):
            timeout = 0.0 if number % 20 == 7 else None
            generation = engine.submit(
                served,
                prompt,
                greedy(rng.randrange(1, 12)),
                scope=rng.choice(("", "tenant a", "tenant b")),
                app=rng.choice(("billing", "search")),
                timeout=timeout,
            )
            if number % 25 == 3:
                generation.cancel()
            completion = generation.result()
            done.append(completion)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, range(count)))
    return done


def total(found, name: str, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(value for (each, has), value in found.items() if each == name and wanted <= has)


def get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode()


def settled(engine) -> Report:
    while (report := engine.report()).running or report.waiting:
        time.sleep(0.01)
    engine._owner.call(lambda: None)
    return engine.report()


@pytest.mark.long
def test_after_200_mixed_requests_every_number_is_the_reports(running_of, tiny_model):
    engine = running_of(guards="warn")
    served = engine.serve(tiny_model)
    done = mixed(engine, served, 200)
    report = settled(engine)
    server = start_metrics_server(0, vllm=True)
    try:
        found = samples(get(server.url))
    finally:
        server.close()
    assert report.requests == 200
    assert report.failed >= 10
    assert total(found, "gemma_jax_requests_total") == 200
    assert (
        total(found, "gemma_jax_request_errors_total") + total(found, "gemma_jax_cancellations_total") == report.failed
    )
    assert total(found, "gemma_jax_tokens_total", kind="generated") == report.generated_tokens
    assert total(found, "gemma_jax_tokens_total", kind="reused") >= report.reused_tokens > 0
    compiles = sum(counts.compiles for counts in engine.tally.by_model.values())
    assert total(found, "gemma_jax_compiles_total") == compiles
    assert found["gemma_jax_device_copies_total", frozenset()] == report.device_copies
    assert total(found, "gemma_jax_copied_bytes_total", direction="to_device") == report.bytes_to_device
    assert found["gemma_jax_requests_running", frozenset()] == 0
    assert found["gemma_jax_steps_total", frozenset()] == report.steps
    assert total(found, "gemma_jax_step_rows_count") <= report.steps
    assert total(found, "gemma_jax_cold_starts_total") == report.cold_starts > 0
    assert {dict(has)["app"] for name, has in found if name == "gemma_jax_requests_total"} == {"billing", "search"}
    assert {dict(has)["scope"] for name, has in found if name == "gemma_jax_requests_total"} == {
        "", scope_label("tenant a"), scope_label("tenant b")
    }  # fmt: skip
    # The sums of the histograms are the times that the callers were told.
    for name, measured in {
        "gemma_jax_request_queue_seconds": [each.timings.queued_s for each in done],
        "gemma_jax_request_prefill_seconds": [each.timings.prefill_s for each in done],
        "gemma_jax_time_to_first_token_seconds": [each.timings.first_token_s for each in done],
        "gemma_jax_request_seconds": [each.timings.total_s for each in done],
    }.items():
        assert total(found, f"{name}_sum") == pytest.approx(sum(measured), rel=0.02), name
    # Between tokens is what lies behind the first; a request ends a moment after its last token.
    behind_first = sum(e.timings.total_s - e.timings.first_token_s for e in done if e.generated_tokens > 1)
    between = total(found, "gemma_jax_inter_token_seconds_sum")
    assert between <= behind_first * 1.001
    assert total(found, "gemma_jax_request_seconds_count") == len(done)
    assert total(found, "gemma_jax_inter_token_seconds_count") == sum(each.generated_tokens - 1 for each in done)
    for cold, start in ((True, "cold"), (False, "steady")):
        assert total(found, "gemma_jax_request_seconds_count", start=start) == report.latency("total", cold=cold).values
    # And so are vLLM's.
    assert total(found, "vllm:generation_tokens_total") == report.generated_tokens
    assert total(found, "vllm:e2e_request_latency_seconds_count") == len(done)
    assert total(found, "vllm:e2e_request_latency_seconds_sum") == pytest.approx(sum(e.timings.total_s for e in done))
    assert total(found, "vllm:request_success_total") == 200
    assert total(found, "vllm:request_success_total", finished_reason="abort") == total(
        found, "gemma_jax_cancellations_total"
    )
    assert total(found, "vllm:request_generation_tokens_sum") == sum(each.generated_tokens for each in done)
    assert total(found, "vllm:request_prompt_tokens_count") == len(done)
    inference = sum(each.timings.total_s - each.timings.queued_s for each in done)
    assert total(found, "vllm:request_inference_time_seconds_sum") == pytest.approx(inference)
    assert total(found, "vllm:prompt_tokens_by_source_total") == total(found, "vllm:prompt_tokens_total")
    assert total(found, "vllm:prefix_cache_hits_total") == total(found, "gemma_jax_tokens_total", kind="reused")
    # The report says the same to people, notebooks and programs.
    assert json.loads(json.dumps(report.to_dict()))["requests"] == 200
    assert "cold" in str(report)
    drawn = ET.fromstring(report._repr_html_())
    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}svg")) == 4
    assert "script" not in report._repr_html_()


def finished(number: int) -> Finished:
    timings = Timings(0.1, 0.2, 0.3, 1.0)
    who = (f"model {number % 3}", f"tenant {number}", f"app {number}")
    return Finished(*who, "stop", False, 3, 1, 2, 0, 0, 0, 0, timings, token_s=(0.1,))


def test_there_are_never_too_many_series():
    metrics = Metrics()
    for number in range(5 * MOST_SERIES):
        metrics.finished(finished(number))
    report = report_of(series=metrics.by_series(), requests=5 * MOST_SERIES)
    found = {family.name: family for family in families(report)}
    assert len(found["gemma_jax_requests"].numbers) == MOST_SERIES + 1
    assert sum(found["gemma_jax_requests"].numbers.values()) == 5 * MOST_SERIES
    assert len(found["gemma_jax_request_seconds"].distributions) == MOST_SERIES + 1
    assert not any("tenant" in label for labels in found["gemma_jax_requests"].numbers for label in labels)
