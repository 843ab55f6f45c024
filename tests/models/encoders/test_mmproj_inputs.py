"""The inputs of a file of encoders are known before it is loaded."""

from __future__ import annotations

from langchain_gemma_jax import ChatGemmaJax
from tests.models.encoders.make import write, write_encoders


def test_profiles_say_what_lies_beside_a_file(tmp_path):
    path = write(tmp_path / "x")
    for model in (path, path.parent):
        profile = ChatGemmaJax(model=str(model)).profile
        assert (profile["image_inputs"], profile["audio_inputs"]) == (True, False)
    write_encoders(tmp_path / "x" / "mmproj-tiny-F32.gguf", "gemma-4-e4b-vision")
    assert ChatGemmaJax(model=str(path)).profile["audio_inputs"]
    (tmp_path / "x" / "mmproj-tiny-F32.gguf").write_bytes(b"GGUF")
    assert not ChatGemmaJax(model=str(path)).profile["image_inputs"]
