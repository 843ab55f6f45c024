"""A server of this process's engine, in a thread: and HTTP as a test asks it, well formed or not."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.listening import listen_at_port, listen_at_socket
from langchain_gemma_jax.server.readiness import Readiness
from langchain_gemma_jax.server.running import RunningServer
from langchain_gemma_jax.wire.addresses import PATH

HELLO = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]}
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
PUBLIC = {CHAT: HELLO, MESSAGES: HELLO | {"max_tokens": 9}, RESPONSES: {"model": "scripted", "input": "Hi"}}
ALICE, BOB = "alice-0123456789abcdef", "bob-0123456789abcdef"
NATIVE = PATH + "answer"

QUICK = ServerLimits(drain_s=1)


@contextmanager
def serving(
    folder: Path | None,
    *,
    models: tuple[str, ...] = ("sprout-s",),
    others: bool = True,
    keys: ApiKeys | None = None,
    limits: ServerLimits = QUICK,
    open_metrics: bool = False,
    page: bool = True,
    defaults: Mapping[str, object] | None = None,
) -> Iterator[RunningServer]:
    """A server at a socket in a folder, or at a port. It prepares nothing: engines of tests are ready, or none."""
    pytest.importorskip("uvicorn", reason="the extra [serve]")
    listening = listen_at_port("127.0.0.1", 0) if folder is None else listen_at_socket(folder / "engine.sock")
    served = ServedModels(models, others, defaults or {})
    app = GemmaJaxApp(served, keys, limits, Readiness(()), open_metrics=open_metrics, page=page)
    with RunningServer(app, listening, limits) as server:
        yield server


class SocketConnection(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = connected(f"unix:{self._path}")


def connected(shown: str) -> socket.socket:
    """A connection to a server, on which anything can be sent."""
    if shown.startswith("unix:"):
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(60)
        found.connect(shown.removeprefix("unix:"))
        return found
    host, _, port = shown.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), 60)


def asked(
    shown: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, method: str | None = None
) -> tuple[int, Any, Mapping[str, str]]:
    """The status, the body and the headers of a response. A body that is bytes is sent as it is."""
    where = shown.removeprefix("unix:")
    host = shown.removeprefix("http://")
    connection = SocketConnection(where) if shown.startswith("unix:") else http.client.HTTPConnection(host, timeout=60)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, data, dict(headers or {}))
        response = connection.getresponse()
        text = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()
    if "json" in found.get("content-type", "") and "ndjson" not in found["content-type"]:
        return response.status, json.loads(text), found
    return response.status, text.decode(), found


def events(text: str) -> list[tuple[str, Any]]:
    """The events of a stream: their names, and what they say."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if "data" in fields:
            data = fields["data"]
            found.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return found


async def answered(
    app: GemmaJaxApp, path: str, body: bytes, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """The status and the body of a response, without a socket: the client stays until it has all."""
    told, gone = [{"type": "http.request", "body": body}], asyncio.Event()
    status, parts = 0, []

    async def receive() -> Any:
        if not told:
            await gone.wait()
        return told.pop() if told else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    named = {"host": "localhost", **(headers or {})}
    listed = [(name.encode(), value.encode()) for name, value in named.items()]
    await app({"type": "http", "method": "POST", "path": path, "headers": listed}, receive, send)
    return status, b"".join(parts)
