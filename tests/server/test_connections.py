"""Clients that never speak, read slowly, stop in the middle or leave: none holds anything for long."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra [serve]")

from langchain_gemma_jax.server.http.connections import bounded_by
from langchain_gemma_jax.server.http.limits import ServerLimits
from tests.serving import asked, connected, serving
from tests.waiting import until

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
HELLO = b'{"model": "scripted", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}'
SHORT = ServerLimits(head_s=0.3, body_s=0.3, stalled_s=0.3, drain_s=1)


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def ended(line: socket.socket) -> bytes:
    got = b""
    try:
        while data := line.recv(65536):
            got += data
    except ConnectionResetError:
        pass
    return got


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_connections_that_never_speak_are_told_and_closed(says, count, tmp_path):
    says()
    limits = ServerLimits(head_s=0.3, drain_s=1, connections=2000)
    with serving(tmp_path, limits=limits) as server:
        asked(server.listening.shown, "/health")
        before = descriptors()
        lines = [connected(server.listening.shown) for _ in range(count)]
        for line in lines[::2]:
            line.sendall(b"GET /hea")  # half of them begin
        for line in lines:
            assert b" 408 " in ended(line)
            line.close()
        until(lambda: descriptors() <= before)


def test_no_more_connections_than_there_may_be(says):
    says()
    with serving(None, limits=ServerLimits(connections=3, drain_s=1)) as server:
        lines = [connected(server.listening.shown) for _ in range(3)]
        time.sleep(0.2)
        with connected(server.listening.shown) as one_more:
            assert b'"code": "busy"' in ended(one_more)
        for line in lines:
            line.close()
        until(lambda: asked(server.listening.shown, "/health")[0] == 200)


def test_a_reader_that_stops_is_let_go(says, tmp_path):
    engine = says("x" * 4000 + "<turn|>")
    with serving(tmp_path, limits=ServerLimits(stalled_s=0.3, drain_s=1)) as server:
        with connected(server.listening.shown) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.sendall(HEAD % len(HELLO) + HELLO)
            until(lambda: bool(engine.requests))
            until(lambda: server.app.calls.count == 0)
        assert asked(server.listening.shown, "/health")[1]["open_calls"] == 0


@pytest.mark.parametrize("sent", [HEAD % 500 + HELLO, HEAD[:30], HEAD % 5 + b"{"])
def test_a_body_that_is_cut_off_leaves_nothing(at, server, says, sent):
    engine = says("Hello<turn|>")
    with connected(at) as line:
        line.sendall(sent)
    until(lambda: server.app.calls.count == 0)
    assert engine.submitted == []


def test_each_server_has_its_own_bounds():
    assert bounded_by(SHORT).limits.head_s == 0.3
    assert bounded_by(ServerLimits()).limits.head_s == 20.0


def test_whoever_asks_how_the_server_is_gets_in_beside_all_others(says):
    says()
    with serving(None, limits=ServerLimits(connections=3, probes=2, drain_s=1)) as server:
        at = server.listening.shown
        asked(at, "/health")
        lines = [connected(at) for _ in range(3)]  # which say nothing
        until(lambda: len(bounded_connections(server)) == 3)
        for _ in range(4):
            assert asked(at, "/health")[0] == 200
            assert asked(at, "/ready")[0] == 200
            with connected(at) as other:
                other.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b'"code": "busy"' in ended(other)
        silent = [connected(at) for _ in range(20)]  # and want those places too
        assert asked(at, "/health")[0] == 200
        for line in silent:
            assert b'"code": "busy"' in ended(line)
        for line in (*lines, *silent):
            line.close()
        until(lambda: asked(at, "/v1/models")[0] == 200)


def bounded_connections(server) -> set[object]:
    return server._server.server_state.connections
