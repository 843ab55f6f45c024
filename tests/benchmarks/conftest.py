"""Models of benchmarks, compiled in a hurry where that is asked for."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture(scope="module")
def quick_compiles():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
