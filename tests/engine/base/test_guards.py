"""A guard counts, and warns or refuses, as it was told."""

from __future__ import annotations

import warnings

import pytest

from langchain_gemma_jax.engine.base.guards import Guard, GuardWarning
from langchain_gemma_jax.errors import GuardError


def test_off_does_nothing():
    guard = Guard("recompile", "off")
    guard.trip("a reason")
    assert guard.trips == {}


def test_warn_counts_and_warns():
    trips: dict[str, int] = {}
    guard = Guard("recompile", "warn", trips)
    for _ in range(2):
        with pytest.warns(GuardWarning, match="recompile guard: a reason"):
            guard.trip("a reason")
    assert trips == {"recompile": 2}


def test_raise_counts_and_raises():
    guard = Guard("recompile", "raise")
    with pytest.raises(GuardError, match="recompile guard: a reason"):
        guard.trip("a reason")
    assert guard.trips == {"recompile": 1}


def test_where_warnings_are_errors_the_error_is_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GuardError, match="a reason") as raised:
            Guard("recompile", "warn").trip("a reason")
    assert raised.value.__cause__ is None
