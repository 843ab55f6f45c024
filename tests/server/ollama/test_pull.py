"""Ollama's ``/api/pull``: what is here is there at once, the rest comes from the Hub, where callers may name models."""

from __future__ import annotations

import json
import threading

import httpx
import numpy as np
import ollama
import pytest
from huggingface_hub import close_session
from safetensors.numpy import save

from langchain_gemma_jax import ModelNotOnHubError
from langchain_gemma_jax.server.ollama import pull
from langchain_gemma_jax.stopping import StoppedError
from tests.hub_server import HubServer
from tests.serving import asked, connected, serving
from tests.waiting import LONG

PATH = "/api/pull"
UNKEPT = {"limits": httpx.Limits(max_keepalive_connections=0)}  # connections that nobody has to close


def lines(text):
    return [json.loads(each) for each in text.splitlines()]


@pytest.fixture
def hub(monkeypatch):
    """Downloads, one a call, of a Hub that has gemma-3-1b-it and an unfinished one; and how they ended."""
    found = {"asked": [], "stopped": threading.Event(), "begun": threading.Event()}

    def download(model_id, *, file, progress, stop, transfer):
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


def test_ollamas_client_sees_the_bytes_arrive(says, monkeypatch, tmp_path):
    says()
    small = {"config.json": b'{"model_type": "gemma3_text"}', "tokenizer.json": b"{}"}
    weights = save({"model.norm.weight": np.ones(300_000, np.float32)})
    total, go = sum(map(len, (*small.values(), weights))), threading.Event()
    with HubServer() as hub, serving(None) as server:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        commit = hub.add("org/model", {**small, "model.safetensors": weights})
        hub.fail(f"GET /org/model/resolve/{commit}/model.safetensors", action=lambda: go.wait(LONG))
        seen = []
        for each in ollama.Client(host=server.listening.shown, **UNKEPT).pull("hf.co/org/model", stream=True):
            seen.append(each)
            if each.completed == total - len(weights):
                go.set()  # the rest may come
    close_session()
    assert go.is_set()
    counted = [each for each in seen if each.total]
    assert {(each.status, each.digest, each.total) for each in counted} == {("pulling org/model", commit, total)}
    completed = [each.completed for each in counted]
    assert completed == sorted(completed)
    assert completed[-1] == total
    assert (seen[0].status, seen[-1].status) == ("pulling manifest", "success")
