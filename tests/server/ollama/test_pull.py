"""Ollama's ``/api/pull``: what is here is there at once, the rest comes from the Hub, where callers may name models."""

from __future__ import annotations

import json
import threading

import pytest

from langchain_gemma_jax import ModelNotOnHubError
from langchain_gemma_jax.server.ollama import pull
from langchain_gemma_jax.stopping import StoppedError
from tests.serving import asked, connected, serving
from tests.waiting import LONG

PATH = "/api/pull"


def lines(text):
    return [json.loads(each) for each in text.splitlines()]


@pytest.fixture
def hub(monkeypatch):
    """Downloads, one a call, of a Hub that has gemma-3-1b-it and an unfinished one; and how they ended."""
    found = {"asked": [], "stopped": threading.Event(), "begun": threading.Event()}

    def download(model_id, *, file, progress, stop):
        found["asked"].append((model_id, file))
        if model_id == "google/gemma-3-27b-it":
            found["begun"].set()
            try:
                stop.sleep(LONG)
            except StoppedError:
                found["stopped"].set()
                raise
        if model_id == "google/gemma-3-4b-it":
            raise ModelNotOnHubError("It has no such model.")

    monkeypatch.setattr(pull, "download", download)
    return found


def test_a_model_is_fetched_from_the_hub(at, says, hub):
    says()
    told = lines(asked(at, PATH, {"model": "gemma3:1b"})[1])
    assert (told[0], told[-1]) == ({"status": "pulling manifest"}, {"status": "success"})
    assert asked(at, PATH, {"name": "hf.co/org/repo:Q8_0", "stream": False})[1] == {"status": "success"}
    assert hub["asked"] == [("google/gemma-3-1b-it", None), ("org/repo", "Q8_0")]
    assert lines(asked(at, PATH, {"model": "sprout-s"})[1])[-1] == {"status": "success"}
    assert len(hub["asked"]) == 2


def test_what_the_hub_lacks_is_said_in_the_stream_or_by_the_status(at, says, hub):
    says()
    assert lines(asked(at, PATH, {"model": "gemma3:4b"})[1])[-1]["error"] == "It has no such model."
    assert asked(at, PATH, {"model": "gemma3:4b", "stream": False})[0] == 404
    for body, status, said in (
        ({"model": "llama3"}, 404, "no Gemma on the Hugging Face Hub"),
        ({"model": "gemma3:1b", "insecure": True}, 400, "insecure"),
        ({"model": "gemma3:1b", "password": "x"}, 400, "token of its own"),
        ({"model": "gemma3:1b", "quantize": "x"}, 400, "quantize: this server knows no such field"),
    ):
        got, found, _ = asked(at, PATH, body)
        assert (got, said in found["error"]) == (status, True), found


def test_only_who_may_name_models_may_fetch_them(says, hub):
    says()
    with serving(None, others=False) as server:
        at = server.listening.shown
        got, found, _ = asked(at, PATH, {"model": "gemma3:1b"})
        assert (got, found["code"], "--any-model" in found["error"]) == (403, "not_allowed", True)
        assert asked(at, PATH, {"model": "sprout-s", "stream": False})[1] == {"status": "success"}
    assert hub["asked"] == []


def test_a_client_that_leaves_ends_the_download(at, says, hub):
    says()
    body = json.dumps({"model": "gemma3:27b"}).encode()
    with connected(at) as client:
        head = f"POST {PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        assert hub["begun"].wait(LONG)
    assert hub["stopped"].wait(LONG)
