"""The parts that tests of the compile cache share: a folder for it, its warnings, and faults of the disk."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.compile_cache import warning
from tests.compile_cache.faults import Faults


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """The warnings of the cache, as in a process that has just begun. A test removes those that it expects."""
    messages: list[str] = []
    monkeypatch.setattr(warning, "_warned", {topic: threading.Lock() for topic in warning._warned})
    stand_in = SimpleNamespace(warn=lambda message, category, stacklevel: messages.append(message))
    monkeypatch.setattr(warning, "warnings", stand_in)
    yield messages
    assert messages == [], "nobody expected that"


@pytest.fixture
def root(tmp_path):
    """Of a cache. It does not exist yet."""
    return tmp_path / "xla"


@pytest.fixture
def faults(monkeypatch):
    return Faults(monkeypatch)
