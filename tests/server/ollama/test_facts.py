"""Facts about models from their files alone."""

from __future__ import annotations

import os

from langchain_gemma_jax.server.ollama.facts import FileFacts, facts_of
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write
from tests.models.gguf.ollama_store import Store
from tests.tiny_embedder import tiny_embedder


def test_a_folder_says_what_it_holds(tmp_path):
    found = facts_of("sprout-s")
    assert (found.format, found.family, found.quantization, found.context) == (
        "safetensors",
        "gemma3_text",
        "BFLOAT16",
        4096,
    )
    assert found.nbytes > found.parameters > 1_000_000
    assert found.details["parameter_size"] == f"{found.parameters / 1e6:.2f}M"
    assert found.capabilities == ["completion", "tools"]
    assert len(found.digest) == 64
    embedder = str(tiny_embedder(tmp_path / "embedder"))
    assert facts_of(embedder).capabilities == ["embedding"]


def test_a_gguf_file_of_ollamas_says_what_it_holds(tmp_path, monkeypatch):
    store = Store(tmp_path / "ollama")
    monkeypatch.setenv("OLLAMA_MODELS", str(store.root))
    path = tmp_path / "x.gguf"
    write(path, CONFIGS["gemma3"], of_one_kind("Q8_0"), tokenizer=small_tokenizer())
    store.add("registry.ollama.ai/library/gemma3/4b", path.read_bytes(), params=b'{"temperature": 0.5, "stop": ["x"]}')
    kept, here = facts_of("ollama:gemma3:4b"), facts_of(str(path))
    assert (kept.format, kept.family, kept.sampling) == ("gguf", "gemma3", {"temperature": 0.5})
    assert (kept.nbytes, kept.parameters, kept.context) == (path.stat().st_size, here.parameters, here.context)
    assert kept.parameters > 0
    before = here.digest
    os.utime(path, (1, 1))
    assert facts_of(str(path)).digest != before
    assert facts_of(str(path)).modified == 1


def test_what_is_not_here_or_broken_says_little(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    (tmp_path / "empty").mkdir()
    for name in (
        "google/gemma-3-4b-it",
        "ollama:gone:1b",
        "no such",
        str(tmp_path / "broken.gguf"),
        str(tmp_path / "empty"),
    ):
        assert facts_of(name) == FileFacts(name)
    assert FileFacts("google/gemma-4-E2B-it").capabilities == ["completion", "tools", "vision", "audio", "thinking"]
    assert FileFacts("x").details["families"] == []
