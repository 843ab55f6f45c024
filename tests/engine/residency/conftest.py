"""The books of a device with room for 100 bytes."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.api import model_estimate
from langchain_gemma_jax.engine.residency.ledger import Ledger
from tests.engine.residency.books import BUDGET


@pytest.fixture
def pool():
    return Ledger(lambda _home: BUDGET)


@pytest.fixture
def lazily(monkeypatch):
    """The books as they are where kernels attend: a page takes memory when it is written to."""
    monkeypatch.setattr(model_estimate, "attends_by_kernel", lambda *_: True)
