"""The books of a device with room for 100 bytes."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.residency.ledger import Ledger
from tests.engine.residency.books import BUDGET


@pytest.fixture
def pool():
    return Ledger(lambda _home: BUDGET)
