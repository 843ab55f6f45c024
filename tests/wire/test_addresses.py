"""Servers' addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from langchain_gemma_jax import ChatGemmaJax, InputError
from langchain_gemma_jax.chat.calling.answerer import THIS_PROCESS
from langchain_gemma_jax.wire.addresses import Address, address_of, default_socket


def test_forms(monkeypatch):
    assert address_of(None) is None
    assert address_of("off") is None
    assert address_of("auto") == Address(path=str(default_socket()))
    assert default_socket() == Path.home() / ".cache/langchain-gemma-jax/server/engine.sock"
    assert address_of("unix:/run/a.sock") == address_of("unix:///run/a.sock") == Address(path="/run/a.sock")
    assert address_of("unix:~/a.sock") == Address(path=str(Path.home() / "a.sock"))
    assert address_of("http://127.0.0.1:8000/v1") == Address(host="127.0.0.1", port=8000)
    assert str(address_of("http://[::1]:8000")) == "http://[::1]:8000"
    # Behind a router: at a path of its own.
    assert address_of("http://h:1/gemma/270m/v1/") == Address(host="h", port=1, below="/gemma/270m")
    assert str(address_of("http://h:1/gemma/")) == "http://h:1/gemma"


@pytest.mark.parametrize(
    "server",
    [
        "", "here", "unix:a.sock", "unix:/a\0b", "http://", "http://a:x", "http://a/b?c", "http://a/b\r\nc",
        "http://a//b", "http://a b", 3, True,
    ],
)  # fmt: skip
def test_what_is_none_is_refused_when_the_model_is_made(server):
    with pytest.raises(InputError, match="server: expected"):
        address_of(server)
    with pytest.raises(ValueError, match="server"):
        ChatGemmaJax(server=server or "nowhere")


def test_https_says_what_to_do():
    with pytest.raises(InputError, match="have a proxy on this machine speak it"):
        address_of("https://example.org")


def test_the_environment_says_which(monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_SERVER", "unix:/run/a.sock")
    monkeypatch.setenv("GEMMA_JAX_API_KEY", "k" * 20)
    model = ChatGemmaJax()
    assert (model.server, model.model) == ("unix:/run/a.sock", "served")
    assert "k" * 20 not in repr(model)
    assert model.api_key.get_secret_value() == "k" * 20
    here = ChatGemmaJax(server="off")
    assert (here.model, here._answerer()) == ("sprout-m", THIS_PROCESS)
    assert ChatGemmaJax(model="x").model == "x"
    monkeypatch.delenv("GEMMA_JAX_SERVER")
    assert (ChatGemmaJax().server, ChatGemmaJax().api_key) == (None, None)
