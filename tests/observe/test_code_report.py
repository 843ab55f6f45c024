"""The findings of a guard in a block of code, to be read, kept and drawn."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree as ET

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.report import Report
from langchain_gemma_jax.engine.base.events import ModelEvicted
from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.observe.jax_code.code_report import SAME_NAMES
from langchain_gemma_jax.observe.jax_code.guard import guard

MEGABYTE = np.ones(2**18, np.float32)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """No guard that a test does not name does anything."""
    monkeypatch.setattr(process, "_settings", Settings(guards="off"))


def fresh():
    return jax.jit(lambda x: x * 2 + 1)


def test_more_than_the_budget_is_told_of_once():
    with pytest.warns(GuardWarning, match=r"the budget is 976\.6 KiB"), guard(residency="warn", budget="1MB") as g:
        kept = [jax.device_put(MEGABYTE) for _ in range(2)]
    assert g.report().trips_by_guard == {"residency": 1}
    del kept
    with guard(residency="raise", budget="100GB"):
        jax.device_put(MEGABYTE)


def test_a_report_can_be_read_kept_and_drawn():
    with guard(transfer="callback", on_trip=lambda _: None, app="<script>") as g:
        fresh()(np.ones(4, np.float32))
    report = g.report()
    assert json.loads(json.dumps(report.to_dict()))["bytes_to_device"] == 16
    assert "guard transfer" in str(report)
    drawn = ET.fromstring(report._repr_html_())
    assert drawn.findall(".//{http://www.w3.org/2000/svg}svg")
    assert "<script" not in report._repr_html_()


def test_its_names_are_those_of_the_engines_report_too():
    with guard(transfer="callback", on_trip=lambda _: None) as g:
        fresh()(np.ones(4, np.float32))
        nothing_yet = g.report().to_dict()
    report = g.report()
    for name in SAME_NAMES:
        assert hasattr(Report, name) or name in {each.name for each in dataclasses.fields(Report)}, name
        assert name in nothing_yet
    assert (report.xla_buckets_compiled, report.jit_cache_misses, report.device_copies) == (1, 1, 1)
    assert (report.jit_cache_hits, report.models_evicted) == (0, 0)
    assert report.xla_total_compile_s == report.compile_s > 0
    assert report.device_placement == "1 implicit copy, 16 B in total"
    assert "1 implicit copy, 16 B in total" in str(report)
    with guard() as g:
        pass
    assert g.report().device_placement == "no device placement mismatches detected"


def test_models_that_leave_memory_in_a_block_are_counted_and_no_others(running_of, tiny_model):
    engine = running_of(guards="off")

    def leave() -> None:
        engine.events.publish(ModelEvicted("m", 1, 0.0))

    leave()
    with guard() as g:
        leave()
        leave()
        assert g.report().models_evicted == 2
    leave()
    assert g.report().models_evicted == 2
