"""A tiny Gemma in a folder, and no Hub."""

from __future__ import annotations

import json

import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.models.hub import download as hub
from tests.models.loading.tiny_folder import CONFIG, tensors, write_tokenizer


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "generation_config.json").write_text('{"temperature": 0.5, "eos_token_id": [1, 106]}')
    write_tokenizer(path)
    save_file(tensors(), path / "model.safetensors")
    return path


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr(hub, "download", lambda *_, **__: pytest.fail("asked the Hub"))
