"""The findings, and which of several verdicts counts."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.cli.health.findings import Finding, Verdict, worst


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([], "ok"), (["ok", "ok"], "ok"), (["ok", "warn"], "warn"), (["bad", "warn", "ok"], "bad")],
)
def test_the_worst_verdict_counts(verdicts, expected):
    assert worst([Finding("what", Verdict(verdict), "said") for verdict in verdicts]) == expected
