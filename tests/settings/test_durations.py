"""Durations as people write them."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.settings.durations import seconds_of


def test_numbers_and_texts_are_seconds():
    told = {
        5: 5.0, 0: 0.0, -1: -1.0, 1.5: 1.5, "300": 300.0, "-1": -1.0, "5m": 300.0, "1h30m": 5400.0, "1.5h": 5400.0,
        "300ms": 0.3, "-1m": -60.0, " 90s ": 90.0, ".5s": 0.5, "2m3.5s": 123.5, "1us": 1e-6, "+4s": 4.0,
    }  # fmt: skip
    assert {value: pytest.approx(seconds_of(value, "x")) for value in told} == told


def test_what_is_no_duration_is_refused_by_name():
    wrong = [True, None, [], {}, "", "m", "5 minutes", "5m5", "5x", "--5m", "1e9s", "∞", "9" * 70, 2**31, float("nan")]
    for value in [*wrong, float("inf")]:
        with pytest.raises(InputError, match=r"^keep_alive: expected seconds, or a duration such as"):
            seconds_of(value, "keep_alive")
