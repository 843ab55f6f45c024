"""A server of an engine without a model, which says what a test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.host.warning_sink import warning_sink
from langchain_gemma_jax.server.running import RunningServer
from tests.chat.scripted import ScriptedEngine
from tests.serving import serving


@pytest.fixture(scope="package")
def server() -> Iterator[RunningServer]:
    """At a port of this machine."""
    with serving(None) as running:
        yield running


@pytest.fixture
def at(server) -> str:
    """Where it listens."""
    return server.listening.shown


@pytest.fixture
def says(monkeypatch) -> Callable[..., ScriptedEngine]:
    """``says("Hello<turn|>")``: what the engine behind it answers; nothing: it is silent."""

    def says(*answers: str, **how: object) -> ScriptedEngine:
        engine = ScriptedEngine(list(answers), silent=not answers, **how)
        monkeypatch.setattr(process, "engine", lambda: engine)
        return engine

    return says


@pytest.fixture(autouse=True)
def _warnings_of_its_own():
    """Forget at the end of a test who hears a call's warnings: a later one's would go there and not to its caller."""
    yield
    warning_sink.set(None)
