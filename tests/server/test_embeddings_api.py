"""Vectors of texts over HTTP, as OpenAI's clients ask for them."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from langchain_gemma_jax import GemmaJaxEmbeddings
from tests.own_engine import own_engine
from tests.serving import asked, serving
from tests.tiny_embedder import tiny_embedder

PATH = "/v1/embeddings"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_embedder(tmp_path_factory.mktemp("embedder") / "model"))


@pytest.fixture(scope="module")
def at(folder):
    with own_engine(), serving(None, models=(folder, "sprout-s"), others=False) as server:
        yield server.listening.shown


def test_vectors_are_those_of_this_process_in_both_encodings(at, folder):
    texts = ["HELLO", "HELLO AGAIN"]
    expected = GemmaJaxEmbeddings(model=folder, document_prompt="").embed_documents(texts)
    status, found, _ = asked(at, PATH, {"model": folder, "input": texts})
    assert (status, found["object"], found["model"]) == (200, "list", folder)
    assert [each["index"] for each in found["data"]] == [0, 1]
    np.testing.assert_allclose([each["embedding"] for each in found["data"]], expected, atol=1e-6)
    assert found["usage"] == {"prompt_tokens": 7 + 13, "total_tokens": 7 + 13}
    _, found, _ = asked(at, PATH, {"model": folder, "input": "HELLO", "encoding_format": "base64", "dimensions": 4})
    packed = np.frombuffer(base64.b64decode(found["data"][0]["embedding"]), np.float32)
    np.testing.assert_allclose(packed, np.array(expected[0][:4]) / np.linalg.norm(expected[0][:4]), atol=1e-6)


def test_what_is_not_possible_is_said(at, folder):
    wrong = {
        "another model": ({"model": "text-embedding-3-small"}, 404, "It has: "),
        "a model that writes": ({"model": "sprout-s"}, 400, "makes no vectors"),
        "no model": ({"model": None}, 400, "model: expected a string"),
        "no text": ({"input": None}, 400, "input: expected a list"),
        "no texts": ({"input": []}, 400, "from 1 to 2048"),
        "too many": ({"input": ["A"] * 2049}, 400, "found 2049"),
        "token ids": ({"input": [[1, 2]]}, 400, "check_embedding_ctx_length=False"),
        "an object": ({"input": [{}]}, 400, "input[0]: expected a string"),
        "too many numbers": ({"dimensions": 99}, 400, "vectors of 16 numbers"),
        "no number": ({"dimensions": "4"}, 400, "a whole number"),
        "another encoding": ({"encoding_format": "hex"}, 400, "'float' or 'base64'"),
        "a field of nothing": ({"truncate": True}, 400, "truncate"),
        "a long text": ({"input": "A" * 500}, 400, "The prompt has 502 tokens"),
    }
    for name, (changes, status, said) in wrong.items():
        got, found, _ = asked(at, PATH, {"model": folder, "input": "HELLO"} | changes)
        assert (got, said in found["error"]["message"]) == (status, True), (name, found)
    got, found, _ = asked(at, "/v1/chat/completions", {"model": folder, "messages": [{"role": "user", "content": "A"}]})
    assert (got, "Use it with GemmaJaxEmbeddings" in found["error"]["message"]) == (400, True)
    assert asked(at, PATH)[0] == 405
