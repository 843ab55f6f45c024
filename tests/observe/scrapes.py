"""Expositions of metrics, read as Prometheus reads them."""

from __future__ import annotations

import pytest

client = pytest.importorskip("prometheus_client", reason="an extra")
from prometheus_client.parser import text_string_to_metric_families  # noqa: E402


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of an exposition by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
