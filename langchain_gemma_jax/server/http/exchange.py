"""One request and its response: read within limits, answered while its client is there, errors in its API's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.server.http.bodies import Body, too_large
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.open_calls import OpenCalls
from langchain_gemma_jax.server.http.problems import Problem, RequestError, problem_of

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_ECHOED = "x-session-id"  # the header by which routers keep conversations together
_LONGEST_ECHO = 256


class ErrorForm(Protocol):
    """An API's form of errors."""

    def body(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""

    def in_stream(self, problem: Problem) -> bytes:
        """Return the bytes that end a stream with an error."""


class ClientLeftError(Exception):
    """The client closed its connection, so no response can reach it."""


class Exchange:
    """A request, and the way to answer it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, form: ErrorForm, limits: ServerLimits) -> None:
        self.method: str = scope["method"]
        self.path = path_of(scope)
        self.mounted_at: str = scope.get("root_path", "").rstrip("/")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._fields = len(scope["headers"])
        self._head_bytes = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        self._head_bytes += len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        self._receive, self._send, self._form, self._limits = receive, send, form, limits
        self._streaming = self._responding = False

    def check_head(self) -> None:
        """Refuse a head that is too large. The server below reads a head that arrives at once without counting it.

        Raises:
            RequestError: the head has too many bytes or fields.
        """
        limits = self._limits
        if self._head_bytes > limits.head_bytes or self._fields > limits.head_fields:
            raise RequestError(
                f"Expected a head of at most {limits.head_bytes} bytes and {limits.head_fields} fields, found "
                f"{self._head_bytes} bytes and {self._fields} fields.",
                431,
                "head_too_large",
            )

    async def receive_into(self, body: Body, clock: Clock, calls: OpenCalls) -> None:
        """Receive the request's body.

        Raises:
            RequestError: it is too large, or too slow. BusyError: too many bytes of other requests are in memory.
            ClientLeftError: the client left. DeadlineError: the call's deadline passed, or the server ends.
        """
        declared = self.headers.get("content-length", "0")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)
        clock.parts.now("receiving the request")
        left = clock.left
        async with _first_of(self._receive_all(body), calls.out_of_time.wait()) as (receiving, ending):
            await asyncio.wait(
                (receiving, ending),
                timeout=self._limits.body_s if left is None else min(left, self._limits.body_s),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if receiving.done():
                await receiving
                return
        if calls.out_of_time.is_set():
            raise calls.too_late()
        if clock.left == 0.0:
            raise clock.error("The request itself had not arrived whole.")
        raise RequestError(f"The request had not arrived whole after {self._limits.body_s:g} seconds.", 408, "too_slow")

    async def _receive_all(self, body: Body) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeftError
            body.add(message.get("body", b""))
            if not message.get("more_body", False):
                return

    async def watched(self, work: Coroutine[Any, Any, None], calls: OpenCalls) -> None:
        """Do the work, but cancel it when the client leaves or the server's time for open calls is up.

        Raises:
            ClientLeftError: the client left. DeadlineError: the server ends, and its time for open calls is up.
        """
        async with _first_of(work, self._left(), calls.out_of_time.wait()) as (doing, leaving, ending):
            await asyncio.wait((doing, leaving, ending), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                await doing
                return
        if doing.cancelled() or doing.exception() is not None:
            raise ClientLeftError if leaving.done() and not leaving.cancelled() else calls.too_late()

    async def answer(self, value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response as JSON."""
        body = json.dumps(value, separators=(",", ":")).encode()
        await self.send_text(body, "application/json", status, headers)

    async def send_text(
        self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response."""
        await self._begin(status, {"content-type": kind, "content-length": str(len(body)), **(headers or {})})
        await self._send({"type": "http.response.body", "body": body})

    async def stream(self, pieces: AsyncGenerator[bytes, None], kind: str) -> None:
        """Send a response piece by piece. The head goes with the first: an error before it can still set the status."""
        async with aclosing(pieces):
            async for piece in pieces:
                if not self._streaming:
                    await self._begin(200, {"content-type": kind, "cache-control": "no-store"})
                    self._streaming = True
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        if not self._streaming:
            await self._begin(200, {"content-type": kind})
        await self._send({"type": "http.response.body", "body": b""})
        self._streaming = False

    async def fail(self, error: GemmaJaxError) -> None:
        """Send an error: as the response, or at the end of a stream that has begun."""
        problem = problem_of(error)
        if self._streaming:
            await self._send({"type": "http.response.body", "body": self._form.in_stream(problem)})
        elif not self._responding:
            await self.answer(self._form.body(problem), problem.status, problem.headers)

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._responding = True
        found = dict(headers)
        if (session := self.headers.get(_ECHOED, "")) and len(session) <= _LONGEST_ECHO and session.isprintable():
            found[_ECHOED] = session
        listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": listed})

    async def _left(self) -> None:
        """Wait until the client leaves."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def path_of(scope: Scope) -> str:
    """Return a request's path, without the path that the app is mounted at in another one."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "").rstrip("/"))


@asynccontextmanager
async def _first_of(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[tuple[asyncio.Task[Any], ...]]:
    """Run coroutines as tasks, and cancel those that are left at the end of the block."""
    tasks = tuple(map(asyncio.ensure_future, work))
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
