"""Connections with limits on their number, on the time to send a request, and on the time without reading.

uvicorn has no limit for a client that connects and sends nothing, or that stops reading. Such connections are closed
here.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from langchain_gemma_jax.server.http.limits import ServerLimits

_PROBES = tuple(f"{method} {path} ".encode() for method in ("GET", "HEAD") for path in ("/health", "/ready"))
_PROBE_SECONDS = 1.0  # for a connection above the limit to ask for one of those
_FLUSH_SECONDS = 5.0  # for a last response to reach its client before the connection is aborted


class BoundedConnection(H11Protocol):
    """A connection of uvicorn's that is closed when its client does nothing."""

    limits = ServerLimits()
    probes: list[BoundedConnection] = []  # noqa: RUF012  of one server: its connections above the limit

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._for_probes = len(self.connections) > self.limits.connections
        if self._for_probes:
            self.probes.append(self)
            if len(self.probes) > self.limits.probes:
                self.probes[0].refuse_for_number()  # the oldest one
            self._time(_PROBE_SECONDS, self.refuse_for_number)
            return
        self._time(self.limits.head_s, self._never_spoke)

    def connection_lost(self, exc: Exception | None) -> None:
        self._time(None)
        self._leave_probes()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._for_probes and not self._asking and not data.startswith(_PROBES):
            self.refuse_for_number()
            return
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._time(None)  # a request began, and its body has a time limit of its own

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            if self._for_probes:
                self.transport.close()
                return
            self._time(self.limits.head_s, self._never_spoke)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._time(self.limits.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._time(None)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "invalid_request", f"{msg} Expected HTTP/1.1 with a head of at most 64 KiB.")

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._time(_FLUSH_SECONDS, self.transport.abort)

    def _time(self, seconds: float | None, then: Any = None) -> None:
        """Set the connection's only timer: call ``then`` in ``seconds``; None: never."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, then)

    def _never_spoke(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408, "too_slow", f"No whole request came within {self.limits.head_s:g} seconds.")

    @property
    def _asking(self) -> bool:
        cycle: object = self.cycle  # None before the first request
        return cycle is not None

    def _leave_probes(self) -> None:
        if self in self.probes:
            self.probes.remove(self)

    def refuse_for_number(self) -> None:
        """Close the connection, as there are too many: with a response, unless a request is being answered."""
        self._leave_probes()
        if self._asking:
            self.transport.abort()
        elif not self.transport.is_closing():
            most = self.limits.connections
            self._refuse(429, "busy", f"{most} connections are open already. Try again when some are closed.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Send an error before there is a request, and close. The API is unknown, so the error has OpenAI's form."""
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        body = json.dumps({"error": error}).encode()
        head = (
            f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self._time(_FLUSH_SECONDS, self.transport.abort)


def bounded_by(limits: ServerLimits) -> type[BoundedConnection]:
    """Return the class of connections for a server with these limits."""
    return type("Connection", (BoundedConnection,), {"limits": limits, "probes": []})
