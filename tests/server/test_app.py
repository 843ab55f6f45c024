"""Who may ask what, how each error is told, and that nothing which is sent makes the server fail."""

from __future__ import annotations

import copy
import json
import random
import re
import socket
from contextlib import suppress

import pytest

from langchain_gemma_jax import errors
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.browser.static_files import RUNNING
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.wire.addresses import PATH
from langchain_gemma_jax.wire.error_forms import error_in
from tests.serving import CHAT, HELLO, MESSAGES, NATIVE, PUBLIC, asked, connected, serving

SAYS_SO = {  # a status and a code of its own for each
    errors.ContextLengthError(5, 3): (400, "context_length_exceeded"),
    errors.BusyError("full"): (429, "busy"),
    errors.DeadlineError("late"): (504, "deadline_exceeded"),
    errors.UnknownModelError("no"): (404, "model_not_found"),
    errors.SchemaError("#", "no"): (400, "invalid_schema"),
    errors.DeviceMemoryError("full"): (503, "out_of_memory"),
    errors.GatedModelError("license"): (403, "gated_model"),
    errors.ClosedError("closed"): (503, "closing"),
    errors.ApiKeyError("key"): (401, "invalid_api_key"),
}


def test_errors_of_the_engine_are_told_in_the_form_of_who_asks(at, says):
    engine = says("Hello<turn|>")
    for error, (status, code) in SAYS_SO.items():

        def fail(error=error) -> None:
            raise error

        engine.before = fail
        for path, body in PUBLIC.items():
            for stream in (False, True):
                got, found, headers = asked(at, path, body | {"stream": stream})
                assert (got, found["error"]["code"], found["error"]["message"]) == (status, code, str(error))
                assert (found.get("type") == "error") is (path == MESSAGES)
                assert ("retry-after" in headers) is (code in {"busy", "closing", "out_of_memory"})
        native = {"messages": [{"type": "human", "content": "Hi"}], "options": {"model": "scripted"}}
        got, found, _ = asked(at, NATIVE, native)
        back = error_in(found["error"])
        assert (got, type(back), str(back), vars(back)) == (status, type(error), str(error), vars(error))


def test_the_deadline_of_a_header_is_kept(at, says):
    says()
    for path, body in PUBLIC.items():
        status, found, headers = asked(at, path, body, {"x-deadline-s": "0.05"})
        assert (status, found["error"]["code"], headers["x-should-retry"]) == (504, "deadline_exceeded", "false")
    assert asked(at, CHAT, HELLO, {"x-deadline-s": "soon"})[0] == 400


async def test_an_app_that_is_mounted_in_another_one(says):
    says("Hello<turn|>")
    app, told = GemmaJaxApp(ServedModels(("scripted",)), readiness=Readiness(())), []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""} if not told else {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        told.append(message)

    for root, path, status in (("", "/health", 200), ("/a/b", "/a/b/health", 200), ("/a", "/b/health", 404)):
        told.clear()
        headers = [(b"host", b"localhost")]
        await app({"type": "http", "method": "GET", "path": path, "root_path": root, "headers": headers}, receive, send)
        assert told[0]["status"] == status, path


@pytest.mark.parametrize("headers", [
    {"origin": "https://evil.example"}, {"host": "evil.example"}, {"host": "["}, {"host": "evil.example@localhost"},
    {"host": "localhost#evil.example"}, {"host": "localhost/evil.example"}, {"host": "localhost?evil.example"},
    {"host": "localhost:1@evil.example"}, {"host": "localhost evil.example"}, {"host": "localhost:port"},
])  # fmt: skip
def test_pages_in_a_browser_are_refused(at, headers):
    for path in (CHAT, "/health"):
        assert asked(at, path, HELLO if path == CHAT else None, headers)[0] == 403


def test_a_body_is_bounded(says):
    says()
    with serving(None, limits=ServerLimits(body_bytes=1000, body_s=0.3, drain_s=1)) as server:
        at = server.listening.shown
        assert asked(at, CHAT, b"x" * 1001)[1]["error"]["code"] == "too_large"
        assert asked(at, MESSAGES, b"x" * 1001)[1]["error"]["type"] == "request_too_large"
        with connected(at) as line:  # it says nothing of its length, and never ends
            line.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            line.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
            assert b"too_large" in everything(line)
        with connected(at) as line:
            line.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
            assert b" 408 " in everything(line)


def hostile(seed: int) -> tuple[str, bytes]:
    """A path, and a body that is malformed in one of many ways."""
    draw = random.Random(seed)
    native = [PATH + what for what in ("answer", "stream", "count", "tokens")]
    path = draw.choice([*PUBLIC, *native, f"{MESSAGES}/count_tokens"])
    own = {
        "messages": [{"type": "human", "content": "Hi"}, {"type": "ai", "tool_calls": [{"name": "a", "args": {}}]}],
        "options": {"model": "scripted", "temperature": 1.0, "tools": [{"name": "a", "parameters": {}}]},
    }
    full = HELLO | {
        "max_tokens": 3,
        "tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}, "name": "a"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}],
        "stop": ["x"],
    }
    body = json.loads(json.dumps(own if path.startswith(PATH) else full))
    junk = [None, 3, -1, 1e308, "", "\ud800", "x" * 3000, [], {}, [[]], [None], {"a": {}}, True, 2**70]
    for _ in range(draw.randint(1, 4)):
        spoil(draw, body, junk)
    text = json.dumps(body).encode()
    match draw.randint(0, 9):
        case 0:
            text = text[: draw.randint(0, len(text) - 1)]
        case 1:
            place = draw.randint(0, len(text) - 1)
            text = text[:place] + bytes([draw.randint(0, 255)]) + text[place:]
        case 2:
            text = draw.choice([b"", b"null", b"[]", b"3", b'"x"', b"\xff\xfe", b"[" * 9000, b'{"a":' * 9000, b"NaN"])
    return path, text


def spoil(draw: random.Random, value: object, junk: list[object]) -> None:
    """Put junk somewhere into a value."""
    while isinstance(value, dict | list) and value:
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if draw.random() < 0.4 or not isinstance(value[key], dict | list) or not value[key]:
            value[key] = copy.deepcopy(draw.choice(junk))
            if isinstance(value, dict) and draw.random() < 0.2:
                value[draw.choice(["\u0000", "scope", "model", "type", "zzz"])] = copy.deepcopy(draw.choice(junk))
            return
        value = value[key]


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
def test_malformed_requests_get_an_error_each_and_no_traceback(at, says, count, caplog):
    engine = says(max_context=600)
    engine.silent, told = False, {"error": 0, "fine": 0}
    for seed in range(count):
        engine.answers[:] = ["Hello<turn|>"]
        path, body = hostile(seed)
        status, found, headers = asked(at, path, body)
        if status == 200:
            told["fine"] += 1  # what was spoilt is optional, or means the same
            continue
        told["error"] += 1
        assert "json" in headers["content-type"], (seed, path, body)
        assert 400 <= status < 500, (seed, status, found, body[:300])
        error = found["error"]
        assert error["message"], (seed, found)
        assert ("arguments" in error) is path.startswith(PATH)
        assert (found.get("type") == "error") is path.startswith(MESSAGES)
    assert told["error"] > count / 2
    assert caplog.text == ""
    assert asked(at, "/health")[0] == 200


def everything(line: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    got = b""
    with suppress(ConnectionResetError):  # it closed before it had read all that was sent
        while data := line.recv(65536):
            got += data
    return got


MALFORMED = [
    b"\r\n\r\n", b"\x16\x03\x01\x02", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"BLA bla bla\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n", b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 70000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /ready HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
]  # fmt: skip


def test_what_is_no_http_gets_json_or_nothing(at):
    for sent in MALFORMED:
        with connected(at) as line:
            line.sendall(sent)
            with suppress(OSError):  # it has answered and is gone already
                line.shutdown(1)
            got = everything(line)
        for each in re.split(rb"HTTP/1\.1 (?=\d)", got)[1:]:  # some are two requests in one
            head, _, body = each.partition(b"\r\n\r\n")
            if not body.startswith(RUNNING):
                assert b"application/json" in head, (sent[:60], got[:200])
                json.loads(body)
    assert asked(at, "/health")[0] == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000", "[::1]"])
def test_this_machine_by_each_of_its_names_is_answered(at, host):
    assert asked(at, "/health", headers={"host": host})[0] == 200


def test_a_head_is_as_large_as_it_may_be_and_no_larger(at, says):
    says("Hello<turn|>")
    for fields, status in (
        ([f"X-{number}: a" for number in range(90)], b" 200 "),
        ([f"X-{number}: a" for number in range(10_000)], b" 431 "),
        (["X: " + "a" * 60_000], b" 200 "),
        (["X: " + "a" * 100_000], b" 431 "),
    ):
        with connected(at) as line:
            line.sendall("\r\n".join(["GET /health HTTP/1.1", "Host: localhost", *fields, "", ""]).encode())
            found = line.recv(65536)
        assert status in found or (status == b" 431 " and b" 400 " in found), found[:200]
