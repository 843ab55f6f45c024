"""A small Hub on this machine, and an empty cache."""

from __future__ import annotations

import time

import pytest

from tests.hub_server import HubServer


@pytest.fixture(scope="module", autouse=True)
def _connections():
    """Closes those that the client keeps for later: their servers are gone."""
    from huggingface_hub import close_session

    yield
    close_session()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub and an empty cache, which the environment names."""
    with HubServer() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        yield server


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that were made between attempts. None of them takes any time."""
    made = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made
