"""Prometheus gets what the report says, whatever happened; and it is never too much, or too late."""

from __future__ import annotations

import dataclasses
import json
import random
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from xml.etree import ElementTree as ET

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.events import Finished, Timings
from langchain_gemma_jax.engine.base.metrics import LATENCIES, MOST_SERIES, Metrics
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.errors import BusyError, DeviceFailedError, EngineError
from langchain_gemma_jax.observe.metrics.collector import MetricsCollector, start_metrics_server
from langchain_gemma_jax.observe.metrics.families import families, scope_label
from tests.engine.api.test_report import report as report_of
from tests.engine.faults_support import greedy
from tests.engine.tiny import CONTEXT
from tests.observe.scrapes import client, samples
from tests.waiting import LONG


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


def told(engine) -> dict:
    """Return a scrape of this engine, with vLLM's names."""
    registry = client.CollectorRegistry()
    registry.register(MetricsCollector(vllm=True))
    settled(engine)
    return samples(client.generate_latest(registry).decode())


def test_padding_and_busy_seconds_are_those_of_the_programs_that_ran(running_of, tiny_model):
    engine = running_of(guards="warn")
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61, 62], greedy(1)).result()
    found = told(engine)
    # Three tokens in a chunk of 16, and the answer's only one is picked behind them.
    assert total(found, "gemma_jax_positions_total") == 16
    assert total(found, "gemma_jax_padded_positions_total") == engine.report().padded_positions == 13
    assert "13 of 16 positions (81%)" in str(engine.report())
    busy = total(found, "gemma_jax_device_busy_seconds_total")
    assert busy > 0
    engine._owner.call(lambda: None)  # a round without work
    assert total(told(engine), "gemma_jax_device_busy_seconds_total") == busy
    stood = engine._owner.standstills
    before = engine._owner.models.runners[served].run

    def compiled_first(*given: object) -> object:  # as if the program had to be waited for
        stood.seconds += 1e6
        return before(*given)

    engine._owner.models.runners[served].run = compiled_first
    engine.submit(served, [70, 71, 72], greedy(1)).result()
    settled(engine)
    assert engine.report().busy_s < busy, "the device was not busy while everybody waited for a program"


def test_compile_seconds_have_their_program_and_bucket(running_of, tiny_model, monkeypatch):
    def fresh(programs: Programs, tally: Tally, *_: object) -> Library:
        return Library(programs, None, tally, name="a model")

    monkeypatch.setattr(libraries, "library_of", fresh)
    engine = running_of(guards="warn")
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61, 62], greedy(2)).result()
    found, report = told(engine), engine.report()
    reading = {"model": "a model", "program": "read", "bucket": f"16/{CONTEXT}"}
    assert total(found, "gemma_jax_program_compiles_total", **reading) == 1
    assert total(found, "gemma_jax_program_compile_seconds_total", **reading) == pytest.approx(
        report.compilation_times[f"a model read 16/{CONTEXT}"]
    )
    assert total(found, "gemma_jax_program_compile_seconds_total") == pytest.approx(
        total(found, "gemma_jax_compile_seconds_total")
    )
    assert list(report.compilation_times.values()) == sorted(report.compilation_times.values(), reverse=True)
    with engine._owner.standstills.here("compiling a model read 64 512"):
        assert total(told(engine), "gemma_jax_standstill_seconds") > 0
        assert "compiling a model read 64 512" in str(engine.report())
    assert total(told(engine), "gemma_jax_standstill_seconds") == 0
    engine._loader.libraries.tally.expects(3)
    with engine._loader.libraries.tally.one_more():
        found = told(engine)
        assert "1 are being made, 3 wait for that" in str(engine.report())
    assert (total(found, "gemma_jax_programs_waiting"), total(found, "gemma_jax_programs_making")) == (3, 1)


def test_a_device_has_what_there_is_what_may_be_used_and_what_is(running_of, tiny_model):
    engine = running_of(guards="warn", memory_budget=10**9)
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61, 62], greedy(2)).result()
    settled(engine)
    (device,) = engine.report().devices
    assert device.capacity > device.budget == 10**9
    assert device.used == sum(model.nbytes for model in engine.models())
    engine.reconfigure(dataclasses.replace(engine.settings, memory_budget=int(device.used / 0.85)))
    found = told(engine)
    share = total(found, "gemma_jax_device_used_bytes") / total(found, "gemma_jax_device_budget_bytes")
    assert 0.8 < share < 0.9
    assert total(found, "gemma_jax_device_capacity_bytes", device=device.device) == device.capacity
    before = total(found, "gemma_jax_live_arrays")
    more = [jax.device_put(np.zeros(1)) for _ in range(500)]
    assert total(told(engine), "gemma_jax_live_arrays") > before + 400
    del more


def test_every_request_is_in_one_place_by_its_result(running_of, tiny_model):
    engine = running_of(guards="warn", max_waiting=1)
    served = engine.serve(tiny_model)
    for number in range(3):
        engine.submit(served, [60 + number], greedy(1), app="a", scope="s").result()
    release = threading.Event()
    blocked = threading.Thread(target=lambda: engine._owner.call(lambda: release.wait(LONG)))
    blocked.start()
    generation = engine.submit(served, [50], greedy(1))
    refused = 0
    for _ in range(2):
        with pytest.raises(BusyError):
            engine.submit(served, [51], greedy(1))
        refused += 1
    generation.cancel()
    release.set()
    blocked.join()
    with pytest.raises(EngineError):
        engine.submit(served, [52], greedy(1), timeout=0.0).result()
    found = told(engine)
    wanted = {"well": 3, "failed": 1, "refused": refused, "cancelled": 1}
    for result, count in wanted.items():
        assert total(found, "gemma_jax_requests_by_result_total", result=result) == count, result
    assert {dict(has)["model"] for name, has in found if name == "gemma_jax_requests_by_result_total"} == {served.name}
    assert total(found, "vllm:corrupted_requests_total") == total(found, "gemma_jax_nan_scores_total") == 0
    norm = jax.device_put(np.full(tiny_model.config.width, np.nan, np.float32), tiny_model.device)
    broken = dataclasses.replace(tiny_model, params=tiny_model.params | {"final_norm": norm})
    with pytest.raises(DeviceFailedError, match="NaN"):
        engine.submit(engine.serve(broken), [53], greedy(1)).result()
    found = told(engine)
    assert total(found, "vllm:corrupted_requests_total") == total(found, "gemma_jax_nan_scores_total") == 1


def test_the_targets_that_services_have_are_bounds():
    assert {0.2, 0.5} <= set(LATENCIES)
