"""One request and its response: read within bounds, answered while its client is there, failed in its API's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias

from langchain_gemma_jax.errors import GemmaJaxError
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.open_calls import OpenCalls
from langchain_gemma_jax.server.http.problems import Problem, RequestError, problem_of

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_ECHOED = "x-session-id"  # what routers in front keep conversations together by
_LONGEST_ECHO = 256


class ErrorForm(Protocol):
    """How an API tells errors."""

    def told(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""

    def in_stream(self, problem: Problem) -> bytes:
        """Return what ends a stream that broke off."""


class ClientLeftError(Exception):
    """The client closed its connection: nobody reads what comes."""


class Exchange:
    """A request, and the way to answer it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, form: ErrorForm, limits: ServerLimits) -> None:
        self.method: str = scope["method"]
        self.path = path_of(scope)
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive, self._send, self._form, self._limits = receive, send, form, limits
        self._streaming = self._responding = False

    async def json_body(self) -> dict[str, Any]:
        """Return what the request says.

        Raises:
            RequestError: it is too large, too slow, or no JSON object. ClientLeftError: it broke off.
        """
        most = self._limits.body_bytes
        declared = self.headers.get("content-length", "0")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > most:
            raise RequestError(f"The request has {declared} bytes, where {most} are possible.", 413, "too_large")
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeftError
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise RequestError(f"The request has more than {most} bytes.", 413, "too_large")
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RequestError(
                f"The request had not arrived whole after {self._limits.body_s:g} seconds.", 408, "too_slow"
            ) from None
        return _object(bytes(body))

    async def watched(self, work: Coroutine[Any, Any, None], calls: OpenCalls) -> None:
        """Do the work while the client is there and the server goes on.

        Raises:
            ClientLeftError: it left; the work was cancelled. DeadlineError: the server ends, and there was no time.
        """
        doing = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._left())
        ending = asyncio.ensure_future(calls.out_of_time.wait())
        try:
            await asyncio.wait((doing, leaving, ending), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                await doing
                return
        finally:
            for task in (doing, leaving, ending):
                task.cancel()
            await asyncio.wait((doing, leaving, ending))
        if doing.cancelled() or doing.exception() is not None:
            raise ClientLeftError if leaving.done() and not leaving.cancelled() else calls.too_late()

    async def answer(self, value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response of JSON."""
        body = json.dumps(value, separators=(",", ":")).encode()
        await self.send_text(body, "application/json", status, headers)

    async def send_text(
        self, body: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response."""
        await self._begin(status, {"content-type": kind, "content-length": str(len(body)), **(headers or {})})
        await self._send({"type": "http.response.body", "body": body})

    async def stream(self, pieces: AsyncGenerator[bytes, None], kind: str) -> None:
        """Send a response piece by piece. An error before the first piece is one of the whole request."""
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
        """Tell an error: as the response, or at the end of a stream that was begun."""
        problem = problem_of(error)
        if self._streaming:
            await self._send({"type": "http.response.body", "body": self._form.in_stream(problem)})
        elif not self._responding:
            await self.answer(self._form.told(problem), problem.status, problem.headers)

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
    """Return what is asked for, below where the app is mounted in another one."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "").rstrip("/"))


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"The request's body: expected JSON: {str(error)[:200]}.") from None
    if not isinstance(found, dict):
        raise RequestError(f"The request's body: expected a JSON object, found {type(found).__name__}.")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
