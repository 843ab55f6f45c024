"""The limits of a test's cost, and how a test exceeds them."""

from __future__ import annotations

from contextlib import suppress

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.errors import GuardError, InputError
from langchain_gemma_jax.observe.jax_code.guard import guard
from langchain_gemma_jax.observe.testing.costs import CostsOfTest, Limits, Meter


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((1,), {}),
        ((), {"max_compile": 1}),
        ((), {"max_compiles": -1}),
        ((), {"max_compiles": True}),
        ((), {"max_compiles": 1.5}),
        ((), {"max_cold_start_s": float("nan")}),
        ((), {"max_transfer_bytes": "0"}),
    ],
)
def test_a_marker_that_means_nothing_is_refused(given, named):
    with pytest.raises(InputError, match="expected"):
        Limits.of(given, named)


def test_limits_say_what_passes_them_and_nothing_else():
    limits = Limits.of((), {"max_compiles": 2, "max_transfer_bytes": 0, "max_cold_start_s": 1.5})
    assert list(limits.passed_by(CostsOfTest(2, 1.5, 0, {"recompile": 3}))) == []
    assert len(list(limits.passed_by(CostsOfTest(3, 1.6, 1)))) == 3
    assert list(Limits().passed_by(CostsOfTest(10**6, 1e6, 10**9))) == []


def test_trips_of_an_application_with_a_name_count_and_are_told_by_it(running_of, monkeypatch):
    for started_before in (True, False):
        monkeypatch.setattr(process, "_engine", None)
        if started_before:
            running_of(guards="callback", on_trip=lambda _: None).guards.trip("residency", "before", Asking("billing"))
        with Meter("test_it.py::test_it") as meter:
            engine = process.running_engine() or running_of(guards="callback", on_trip=lambda _: None)
            engine.guards.trip("residency", "as an agent would", Asking("billing"))
            engine.guards.trip("transfer", "likewise", Asking("billing"), nbytes=40)
            engine.guards.trip("transfer", "of nobody's", Asking(""), nbytes=2)
            with suppress(GuardError), guard(transfer="raise"):
                jax.jit(lambda x: x + 1)(np.ones(4, np.float32))
        costs = meter.costs()
        assert costs.trips == {"residency": 1, "transfer": 3}, started_before
        assert costs.apps == {"billing": {"residency": 1, "transfer": 1}}
        assert costs.transfer_bytes == 58
