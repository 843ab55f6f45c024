"""What a test may cost, and what passes that."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.testing.costs import CostsOfTest, Limits


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
