"""An engine with few programs, all of them compiled."""

from __future__ import annotations

import pytest

from tests.engine.faults_support import SMALL


@pytest.fixture
def small(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    return engine, served
