"""Files of other programs on this machine are found where these keep them."""

from __future__ import annotations

from langchain_gemma_jax.models.gguf.local_files import local_files


def test_other_programs_files_are_listed(ollama, monkeypatch, tmp_path):
    folder = tmp_path / "llama"
    for name in ("a-Q8_0.gguf", "b-00001-of-00002.gguf", "b-00002-of-00002.gguf", "mmproj-a.gguf", "c.safetensors"):
        (folder / "deeper").mkdir(parents=True, exist_ok=True)
        (folder / "deeper" / name).write_bytes(b"12345")
    monkeypatch.setenv("LLAMA_CACHE", str(folder))
    found = [(each.path.name, each.nbytes) for each in local_files() if each.program == "llama.cpp"]
    assert found == [("a-Q8_0.gguf", 5), ("b-00001-of-00002.gguf", 10)]
