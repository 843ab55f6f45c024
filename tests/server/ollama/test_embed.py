"""Vectors of texts as Ollama's clients ask for them."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax import GemmaJaxEmbeddings
from langchain_gemma_jax.server.ollama.embed import OllamaEmbed
from tests.own_engine import own_engine
from tests.serving import asked, serving
from tests.tiny_embedder import CONTEXT, tiny_embedder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_embedder(tmp_path_factory.mktemp("embedder") / "model"))


@pytest.fixture(scope="module")
def at(folder):
    with own_engine(), serving(None, models=(folder, "sprout-s"), others=False) as server:
        yield server.listening.shown


def test_vectors_are_those_of_this_process(at, folder):
    texts = ["HELLO", "HELLO AGAIN"]
    expected = GemmaJaxEmbeddings(model=folder, document_prompt="").embed_documents(texts)
    status, found, _ = asked(at, "/api/embed", {"model": folder, "input": texts, "options": {"num_ctx": None}})
    assert (status, found["model"], found["prompt_eval_count"], "warnings" in found) == (200, folder, 7 + 13, False)
    np.testing.assert_allclose(found["embeddings"], expected, atol=1e-6)
    assert found["total_duration"] >= found["load_duration"] >= 0
    _, found, _ = asked(at, "/api/embed", {"model": folder, "input": "HELLO", "dimensions": 4})
    first = np.array(expected[0][:4])
    np.testing.assert_allclose(found["embeddings"], [first / np.linalg.norm(first)], atol=1e-6)
    _, found, _ = asked(at, "/api/embeddings", {"model": folder, "prompt": "HELLO"})
    np.testing.assert_allclose(found["embedding"], expected[0], atol=1e-6)


def test_what_is_too_long_is_cut_and_says_so(at, folder):
    long = {"model": folder, "input": ["A" * 500, "HELLO"]}
    _, found, _ = asked(at, "/api/embed", long)
    (note,) = found["warnings"]
    assert note.startswith("1 of 2 texts were too long for the context, and cut.")
    _, shorter, _ = asked(at, "/api/embed", long | {"options": {"num_ctx": 9, "num_thread": 2, "top_k": 3}})
    assert (found["prompt_eval_count"], shorter["prompt_eval_count"]) == (CONTEXT + 7, 9 + 7)
    assert [each.split(" has")[0] for each in shorter["warnings"][:2]] == ["options.num_thread", "options: top_k"]
    got, found, _ = asked(at, "/api/embed", long | {"truncate": False})
    assert (got, found["code"]) == (400, "context_length_exceeded")


def test_what_is_not_possible_is_said(at, folder):
    for path, change, status, said in (
        ("/api/embed", {"model": "llama3"}, 404, "It has: "),
        ("/api/embed", {"model": "sprout-s"}, 400, "makes no vectors"),
        ("/api/embed", {"input": None}, 400, "input: expected a list"),
        ("/api/embed", {"input": []}, 400, "found none"),
        ("/api/embed", {"input": [5]}, 400, "input[0]: expected a string"),
        ("/api/embed", {"dimensions": 99}, 400, "vectors of 16 numbers"),
        ("/api/embed", {"dimensions": True}, 400, "a whole number from 1"),
        ("/api/embed", {"truncate": "no"}, 400, "truncate: expected true or false"),
        ("/api/embed", {"options": {"mirostat": 1}}, 400, "options.mirostat"),
        ("/api/embed", {"prompt": "HELLO"}, 400, "prompt"),
        ("/api/embeddings", {}, 400, "input: this server knows no such field"),
    ):
        got, found, _ = asked(at, path, {"model": folder, "input": "HELLO"} | change)
        assert (got, said in found["error"]) == (status, True), (change, found)
    got, found, _ = asked(at, "/api/embeddings", {"model": folder})
    assert (got, found["error"]) == (400, "prompt: expected a string, found NoneType.")
    assert OllamaEmbed.streams_as == "application/x-ndjson"
