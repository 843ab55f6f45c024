"""The bodies of requests: limits on their bytes in memory, and on the large ones that are parsed at a time.

The event loop only collects bytes. A body is parsed in a thread, and only a few large ones at a time: until it is a
prompt it takes several times its bytes, and many busy threads of Python would slow the event loop down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from langchain_gemma_jax.bounded_json import bounded_loads
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import BusyError
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.problems import RequestError

LARGE = 1 << 18  # bytes
LARGE_AT_ONCE = 2


class Body:
    """The bytes of one request's body, until they are parsed."""

    def __init__(self, bodies: Bodies) -> None:
        self.size = 0
        self._bodies = bodies
        self._parts: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Add bytes that arrived.

        Raises:
            RequestError: the body is too large. BusyError: the bodies of all requests are, together.
        """
        self.size += len(data)
        self._parts.append(data)
        self._bodies.take(self, len(data))

    def object(self) -> dict[str, Any]:
        """Return the body's JSON object, and drop its bytes: call this once, from any thread. It may take long.

        Raises:
            RequestError: the body is no JSON object, or one beyond the limits of JSON here.
        """
        parts, self._parts = self._parts, []
        data = b"".join(parts)
        parts.clear()
        try:
            found = bounded_loads(data)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"The request's body: expected JSON: {str(error)[:200]}.") from None
        if not isinstance(found, dict):
            raise RequestError(f"The request's body: expected a JSON object, found {type(found).__name__}.")
        return found


class Bodies:
    """The bodies that a server holds. Only the event loop's thread may use it; any may end a ``turn``."""

    def __init__(self, limits: ServerLimits) -> None:
        self.held = 0  # bytes
        self._limits = limits
        self._large = 0  # large bodies that are being parsed
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, body: Body, count: int) -> None:
        """Count bytes of a body.

        Raises:
            RequestError: it is too large. BusyError: it is large, and all bodies together are too large.
        """
        self.held += count
        if body.size > self._limits.body_bytes:
            raise too_large(self._limits.body_bytes)
        if body.size > LARGE and self.held > self._limits.bodies_bytes:
            raise BusyError(
                f"Requests of {self.held - count} bytes are being read already, and {self._limits.bodies_bytes} may be "
                "at once. Ask again when some are done."
            )

    @asynccontextmanager
    async def body(self) -> AsyncIterator[Body]:
        """Give a new body to fill. Its bytes count until the end of the block."""
        found = Body(self)
        try:
            yield found
        finally:
            self.held -= found.size

    @asynccontextmanager
    async def turn(self, body: Body, clock: Clock) -> AsyncIterator[Callable[[], object]]:
        """Wait until a body may be parsed. Gives a function that ends the turn before the block does, from any thread.

        Raises:
            DeadlineError: the call's deadline passed first.
        """
        if body.size <= LARGE:
            yield lambda: None
            return
        loop, ended = asyncio.get_running_loop(), False
        await self._begin(clock)

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._end()

        try:
            yield lambda: loop.call_soon_threadsafe(end)
        finally:
            end()

    async def _begin(self, clock: Clock) -> None:
        if self._large < LARGE_AT_ONCE:
            self._large += 1
            return
        clock.parts.now("waiting behind other large requests")
        left, turn = clock.left, asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(left):
                await turn
        except BaseException as error:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled():  # the turn came at the same moment: pass it on
                self._end()
            if isinstance(error, TimeoutError):
                raise clock.error() from None
            raise

    def _end(self) -> None:
        """Pass the turn to the next one that waits, if there is one."""
        self._large -= 1
        while self._waiting:
            turn = self._waiting.pop(0)
            if not turn.done():
                self._large += 1
                turn.set_result(None)
                return


def too_large(most: int) -> RequestError:
    """Return the error of a body of more than ``most`` bytes."""
    return RequestError(f"The request has more than the {most} bytes that are possible.", 413, "too_large")
