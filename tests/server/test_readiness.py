"""Models made ready by a server that starts."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax import UnknownModelError
from langchain_gemma_jax.cli.command import main
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.server.readiness import Readiness
from tests.waiting import LONG, until


class Loading:
    """An engine that loads and warms up when it is let."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.may_load, self.may_warm = failure, threading.Event(), threading.Event()
        self.asked: list[object] = []

    def load(self, model: str, *, timeout: float | None) -> str:
        self.may_load.wait(LONG)
        if self.failure is not None:
            raise self.failure
        return model

    def warmup(self, served: str, **how: object) -> None:
        self.asked.append((served, how))
        self.may_warm.wait(LONG)

    def close(self, timeout: float) -> bool:
        return True


@pytest.fixture
def loading(monkeypatch):
    def loading(failure: Exception | None = None) -> Loading:
        engine = Loading(failure)
        monkeypatch.setattr(process, "engine", lambda: engine)
        monkeypatch.setattr("langchain_gemma_jax.engine.__call__", lambda: engine, raising=False)
        return engine

    return loading


def until_pending(readiness: Readiness, pending: dict[str, str]) -> None:
    until(lambda: readiness.pending == pending)


def test_what_is_pending_is_said_until_all_is_there(loading):
    engine = loading()
    readiness = Readiness(("a", "b"), max_context=512)
    assert readiness.pending == {"a": "weights", "b": "weights"}
    readiness.begin()
    readiness.begin()
    engine.may_load.set()
    until_pending(readiness, {"a": "programs", "b": "weights"})
    engine.may_warm.set()
    until_pending(readiness, {})
    assert engine.asked == [(name, {"max_context": 512, "progress": False}) for name in "ab"]


def test_weights_are_enough_if_that_is_said(loading):
    engine = loading()
    engine.may_load.set()
    readiness = Readiness(("a",), warmup=False)
    readiness.begin()
    until_pending(readiness, {})
    assert engine.asked == []


def test_a_model_that_cannot_be_loaded_ends_the_server(loading, tmp_path, capsys, caplog):
    loading(UnknownModelError("There is no model called 'gone'.")).may_load.set()
    with caplog.at_level("WARNING"):
        assert main(["serve", "--model", "some/gone", "--socket", str(tmp_path / "a.sock")]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith(f"Serving some/gone at unix:{tmp_path}/a.sock\n")
    assert (shown.err + caplog.text).count("There is no model called 'gone'.") == 1
    assert list(tmp_path.iterdir()) == []
