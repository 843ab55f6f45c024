"""Which files a model is opened from, and that they are closed."""

from __future__ import annotations

from langchain_gemma_jax.models.checkpoint.safetensors import SafetensorsSource
from langchain_gemma_jax.models.loading.load import load


def test_the_files_are_closed(folder, monkeypatch):
    closed = []
    close = SafetensorsSource.close
    monkeypatch.setattr(SafetensorsSource, "close", lambda self: (closed.append(self.location), close(self)))
    load(folder).close()
    assert closed == [str(folder)]
