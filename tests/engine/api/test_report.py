"""The report, as a table for people."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree as ET

import pytest

from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.events import Finished, Timings
from langchain_gemma_jax.engine.base.metrics import ROWS, Metrics, together


def report(**changes: object) -> Report:
    values: dict[str, object] = {field.name: 0 for field in dataclasses.fields(Report)}
    values |= {"kv_bytes_by_scope": {}, "guard_trips": {}, "models": (), "eviction_log": (), "routed": {}}
    values |= {
        "trips_by_app": {},
        "series": {},
        "by_model": {},
        "by_program": {},
        "refused_by_model": {},
        "devices": (),
        "standstill": "",
        "latest_compiles": (),
        "rows": together((), ROWS),
        "kernels": "",
    }
    return Report(**(values | changes))  # type: ignore[arg-type]


def test_the_first_token_is_told_of():
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


def served(seconds: float, *, cold: bool) -> Finished:
    timings = Timings(0.1, 0.2, seconds, 2 * seconds)
    return Finished("m", "", "app", "stop", False, 10, 4, 3, 2, 1, 0, 0, timings, cold=cold, token_s=(0.5, 0.5))


def test_cold_requests_and_steady_ones_are_told_of_apart():
    metrics = Metrics()
    for cold, seconds in ((True, 9.0), (False, 0.2), (False, 0.2)):
        metrics.finished(served(seconds, cold=cold))
    found = report(series=metrics.by_series())
    assert found.cold_starts == 1
    assert [found.latency("total", cold=cold).values for cold in (True, False)] == [1, 2]
    assert found.latency("first_token", cold=True).quantile(0.5) == 10.0
    assert found.latency("first_token", cold=False).quantile(0.5) == 0.2
    assert found.latency("token", cold=False).total == 2.0
    text = str(found)
    assert "1 requests: first token within 10 s" in text
    assert "2 requests: first token within 0.2 s" in text


def test_the_names_that_people_look_for_are_there():
    found = report(compiles=3, compile_s=1.5, cache_hits=4, cache_misses=5, device_copies=6, models_evicted=7)
    plain = json.loads(json.dumps(found.to_dict()))
    assert [plain[name] for name in ("xla_buckets_compiled", "xla_total_compile_s")] == [3, 1.5]
    assert [plain[name] for name in ("jit_cache_hits", "jit_cache_misses")] == [4, 5]
    assert [plain[name] for name in ("device_copies", "models_evicted")] == [6, 7]


def test_trips_are_told_of_by_application():
    text = str(report(guard_trips={"transfer": 3}, trips_by_app={"transfer": {"billing": 2, "": 1}}))
    assert "3 trips: 2 of billing" in text


def test_a_notebook_draws_it():
    drawn = ET.fromstring(report(device_s=2.0, latest_compiles=((10.0, 1.0), (15.0, 2.0)))._repr_html_())
    assert len(drawn.findall("{http://www.w3.org/2000/svg}svg")) == 4
    assert drawn.find("table") is not None
