"""Names as Ollama's clients write them, and which model of a server each stands for."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError, UnknownModelError
from langchain_gemma_jax.models.hub import known_ids
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.ollama.names import is_here, meant, name_in
from tests.models.gguf.ollama_store import Store


def test_a_served_model_answers_to_its_names():
    names = ("google/gemma-3-4b-it", "ollama:gemma3:1b", "ollama:mine", "org/repo:Q8_0", "sprout-s")
    served = ServedModels(names)
    for name, expected in {
        "gemma3:4b": 0, "gemma3": 0, "gemma3:latest": 0, "gemma3:4b-it-qat": 0, "google/gemma-3-4b-it": 0,
        "gemma3:1b": 1, "ollama:gemma3:1b": 1, "mine": 2, "mine:latest": 2, "hf.co/org/repo:Q8_0": 3,
        "huggingface.co/org/repo:Q8_0": 3, "sprout-s": 4, "sprout-s:latest": 4, "served": 0,
    }.items():  # fmt: skip
        assert meant(served, name) == names[expected]
    for name in ("llama3", "gemma3:12b", "gemma4", "x" * 500, "\ud800", "../gemma3:1b"):
        with pytest.raises(UnknownModelError, match="This server has no model called"):
            meant(served, name)


def test_a_server_of_any_model_takes_what_is_on_the_machine(tmp_path, monkeypatch):
    store = Store(tmp_path / "ollama")
    monkeypatch.setenv("OLLAMA_MODELS", str(store.root))
    any_model = ServedModels(("sprout-s",), others=True)
    assert meant(any_model, "gemma3:1b") == "gemma3:1b"  # which loading then refuses
    store.add("registry.ollama.ai/library/gemma3/1b", b"GGUF")
    assert meant(any_model, "gemma3:1b") == "ollama:gemma3:1b"
    assert meant(any_model, "sprout-m") == "sprout-m"
    absent = ("ollama:gemma3:4b", "google/gemma-3-4b-it", "not an id", "")
    assert [is_here(name) for name in ("ollama:gemma3:1b", *absent)] == [True, *[False] * len(absent)]


def test_a_request_names_its_model():
    assert name_in({"model": "a"}) == name_in({"name": "a"}) == name_in({"model": "a", "name": "b"}) == "a"
    for body in ({}, {"model": ""}, {"model": " "}, {"model": 5}, {"name": None}):
        with pytest.raises(InputError, match="model: expected a"):
            name_in(body)


def test_names_of_ollamas_library_are_sizes_that_were_published():
    for latest in ("gemma", "gemma2", "gemma3", "gemma4", "functiongemma"):
        assert known_ids.of_ollama(latest) in {known_ids.hub_id(size) for size in known_ids.known()}
