"""An engine of a tiny model, as this process's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from tests.chat import tiny
from tests.engine.conftest import (  # noqa: F401  the same fixtures
    _compiled,
    _quick_compiles,
    engine_of,
    model_of,
    strict_transfers,
    tiny_folder,
    tiny_model,
)
from tests.engine.tiny import CONTEXT

LADDERS = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,), draft=0)  # little to compile


@pytest.fixture
def running_of(monkeypatch, engine_of) -> Callable[..., Engine]:  # noqa: F811
    """``running_of(guards="warn")``: an engine with these settings, which ``engine()`` gives."""

    def running_of(**settings: object) -> Engine:
        made: Engine = engine_of(**{"ladders": LADDERS, **settings})
        monkeypatch.setattr(process, "_engine", made)
        monkeypatch.setattr(process, "_settings", made.settings)
        return made

    return running_of


@pytest.fixture(scope="session")
def chat_folder(tmp_path_factory) -> Path:
    """A model that converses. All tests that load one load this one, and share what is compiled for it."""
    # A folder of the user's is above the model's, whose own name is the model's.
    return tiny.tiny_folder(tmp_path_factory.mktemp("models") / "CANARY folder" / "tiny", "gemma4", context=CONTEXT)
