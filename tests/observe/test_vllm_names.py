"""The names under which vLLM tells the same."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.observe.metrics.collector import MetricsCollector
from langchain_gemma_jax.observe.metrics.families import families
from langchain_gemma_jax.observe.metrics.vllm_names import vllm_families
from tests.observe.scrapes import client


def test_names_are_ones_that_prometheus_takes():
    names = [family.name for family in [*families(None), *vllm_families(None)]]
    assert len(names) == len(set(names))
    registry = client.CollectorRegistry()
    registry.register(MetricsCollector(vllm=True))
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(MetricsCollector())
