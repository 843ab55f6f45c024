"""What a guard found in a block of code, to be read, kept and drawn."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.engine.base.settings import Settings
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
