"""Stores of models that other programs keep on a machine."""

from __future__ import annotations

import pytest

from tests.models.gguf.ollama_store import Store


@pytest.fixture
def ollama(tmp_path, monkeypatch):
    """An empty store of Ollama's, and nothing of any other program."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "store"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Store(tmp_path / "store")
