"""Calls end with their clients."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import engine
from tests.own_engine import own_engine
from tests.serving import asked, connected, serving
from tests.waiting import until

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


HELLO = b'{"model": "scripted", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}'


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_request(at, server, says, stream):
    engine = says()
    body = HELLO if stream else HELLO.replace(b'"stream": true', b'"stream": false')
    with connected(at) as line:
        line.sendall(HEAD % len(body) + body)
        until(lambda: bool(engine.requests))
        assert server.app.calls.count == 1
    (request,) = engine.requests
    until(request.cancelled.is_set)
    until(lambda: server.app.calls.count == 0)


@pytest.mark.slow
def test_a_client_that_leaves_frees_its_rows(tmp_path):
    with own_engine(), serving(tmp_path) as server:
        running = engine()
        body = HELLO.replace(b"scripted", b"sprout-s")
        asked(server.listening.shown, "/v1/chat/completions", body)
        with connected(server.listening.shown) as line:
            long = body.replace(b'"stream"', b'"logit_bias": {"1": -100, "106": -100}, "max_tokens": 3000, "stream"')
            line.sendall(HEAD % len(long) + long)
            assert line.recv(10)
            until(lambda: running.report().running == 1)
        until(lambda: running.report().running == 0)
