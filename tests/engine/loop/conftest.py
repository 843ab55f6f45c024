"""An engine with few programs, and what it holds."""

from __future__ import annotations

import gc

import pytest

from tests.engine.faults_support import SMALL, Holdings
from tests.engine.tiny import settle


@pytest.fixture
def small(engine_of, tiny_model):
    """An engine whose programs are compiled for one and four conversations, and what it holds before its first one."""
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    settle(engine)
    gc.collect()  # of what the test before held
    return engine, served, Holdings.now()
