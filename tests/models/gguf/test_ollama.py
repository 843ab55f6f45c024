"""Ollama's models are found by their own names, and each way in which one is missing has its own message."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    InputError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.gguf.local_files import local_files
from langchain_gemma_jax.models.gguf.ollama import find_ollama, ollama_models
from langchain_gemma_jax.models.loading.load import load
from tests.models.encoders.make import write_encoders, write_text
from tests.models.gguf.make import CONFIGS, of_one_kind, small_tokenizer, write

PARAMS = {"temperature": 0.7, "top_k": 64, "top_p": 0.95, "stop": ["<end_of_turn>"], "num_ctx": 4096}


def test_a_model_of_ollamas_is_loaded_with_its_own_parameters(ollama, tmp_path):
    path = tmp_path / "x.gguf"
    write(path, CONFIGS["gemma"], of_one_kind("Q8_0"), tokenizer=small_tokenizer())
    params = json.dumps(PARAMS).encode()
    ollama.add("registry.ollama.ai/library/gemma3/4b", path.read_bytes(), params=params, template=b"{{ boom }}")
    with load("ollama:gemma3:4b", dtype="float32", progress=False) as model:
        assert model.name == "gemma3:4b"
        assert model.generation_defaults == {"do_sample": True, "temperature": 0.7, "top_k": 64, "top_p": 0.95}
        assert model.chat_format.has_template  # the template is Ollama's own, and is never run
    with pytest.raises(InputError, match="is for models on the Hub"):
        load("ollama:gemma3:4b", revision="main")


def test_encoders_that_ollama_pulled_with_a_model_are_its_own(ollama, tmp_path):
    text, encoders = tmp_path / "x.gguf", tmp_path / "mmproj.gguf"
    write_text(text, "gemma-3-4b-vision")
    write_encoders(encoders, "gemma-3-4b-vision")
    ollama.add("hf.co/org/repo-GGUF/Q8_0", text.read_bytes(), projector=encoders.read_bytes())
    ollama.add("hf.co/org/repo-GGUF/Q4_0", text.read_bytes())
    assert load("ollama:hf.co/org/repo-GGUF:Q4_0").media is None
    model = load("ollama:hf.co/org/repo-GGUF:Q8_0")
    assert model.media is not None
    assert model.encoders.read(0, "float32", model.placement).layers


def test_every_way_to_name_one(ollama):
    wheres = {
        "gemma3": "registry.ollama.ai/library/gemma3/latest",
        "gemma3:1b": "registry.ollama.ai/library/gemma3/1b",
        "me/mine:q4": "registry.ollama.ai/me/mine/q4",
        "hf.co/org/repo-GGUF:Q8_0": "hf.co/org/repo-GGUF/Q8_0",
    }
    blobs = {name: ollama.add(where, name.encode())[1] for name, where in wheres.items()}
    for name, blob in blobs.items():
        assert find_ollama(f"ollama:{name}").path == blob
    whole = {name if ":" in name else f"{name}:latest" for name in wheres}
    assert {model.name for model in ollama_models()} == whole
    assert {(each.source, each.program) for each in local_files()} == {(f"ollama:{name}", "Ollama") for name in whole}


@pytest.mark.parametrize("name", ["", ":4b", "a/b/c/d:e", "../x:y", "a:b/../c", "a b", "a..b", "/etc:passwd", "a:"])
def test_what_cannot_be_a_name(ollama, name):
    if name == "a:":  # nothing behind the colon means the usual tag
        with pytest.raises(CheckpointNotFoundError, match="the model a:latest"):
            find_ollama(f"ollama:{name}")
        return
    with pytest.raises(InputError, match=r"as in .ollama:gemma3:4b"):
        find_ollama(f"ollama:{name}")


def test_each_way_not_to_be_there_has_its_message(ollama, monkeypatch, tmp_path):
    def says(error, match):
        with pytest.raises(error, match=match):
            find_ollama("ollama:gemma3:4b")

    where = "registry.ollama.ai/library/gemma3/4b"
    says(CheckpointNotFoundError, r"found no model\. Fetch it: ollama pull gemma3:4b")
    partial = ollama.root / "blobs" / f"sha256-{'0' * 64}-partial"
    partial.write_bytes(b"x")
    says(CheckpointNotFoundError, "a download that is under way or was broken off")
    manifest, blob = ollama.add(where, b"model")
    blob.write_bytes(b"mode")
    says(CorruptCheckpointError, r"5 bytes, as .*4 bytes.*may be writing to it")
    blob.rename(f"{blob}-partial")
    says(CheckpointNotFoundError, "found a part of it")
    (blob.parent / f"{blob.name}-partial").unlink()
    says(CheckpointNotFoundError, "found no such file. Fetch it again: ollama pull gemma3:4b")
    for content, match in {
        b"": "may be writing to it",
        b"{": "a JSON object",
        b"{}": "layers with mediaType",
        b'{"layers": []}': "a layer with a model",
        b'{"layers": [{"mediaType": "m", "digest": "sha256:../../x", "size": 1}]}': "layers with mediaType",
        b"x" * (2 << 20): "bytes, found 2,097,152",
    }.items():
        manifest.write_bytes(content)
        says(CorruptCheckpointError, match)
    ollama.add(where, b"model", adapter=b"lora")
    says(UnsupportedModelError, "adapter")
    ollama.add(where, b"model", params=b"[]")
    says(CorruptCheckpointError, "a JSON object")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "elsewhere"))
    says(CheckpointNotFoundError, "Is Ollama installed here")


def test_a_store_that_cannot_be_read(ollama, monkeypatch):
    _, blob = ollama.add("registry.ollama.ai/library/gemma3/4b", b"model")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("langchain_gemma_jax.models.gguf.ollama._small", refuse)
    with pytest.raises(CheckpointError, match=r"Permission denied.*may belong to another user"):
        find_ollama("ollama:gemma3:4b")
    assert blob.exists()
