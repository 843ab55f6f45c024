"""Connections that are bounded: how many there are, how long they may say nothing, how long they may read nothing.

uvicorn has no limit for a client that connects and never speaks, or that stops reading: such connections are ended
here.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from langchain_gemma_jax.server.http.limits import ServerLimits

_PROBES = tuple(f"{method} {path} ".encode() for method in ("GET", "HEAD") for path in ("/health", "/ready"))
_PROBE_SECONDS = 1.0  # that a connection beside the most has to ask for one of those
_FLUSH_SECONDS = 5.0  # for what was sent to reach a client that is being let go


class BoundedConnection(H11Protocol):
    """A connection as uvicorn has it, that ends when its client does nothing."""

    limits = ServerLimits()
    probes: list[BoundedConnection] = []  # noqa: RUF012  of one server: its connections beside the most

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._for_probes = len(self.connections) > self.limits.connections
        if self._for_probes:
            self.probes.append(self)
            if len(self.probes) > self.limits.probes:
                self.probes[0].refuse_for_number()  # the one that has been there longest
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
            self._time(None)  # a request began: reading its body has a limit of its own

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
        """Have something happen in so many seconds, instead of what was to happen."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, then)

    def _never_spoke(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408, "too_slow", f"No whole request came within {self.limits.head_s:g} seconds.")

    @property
    def _asking(self) -> bool:
        cycle: object = self.cycle  # None before there is a request
        return cycle is not None

    def _leave_probes(self) -> None:
        if self in self.probes:
            self.probes.remove(self)

    def refuse_for_number(self) -> None:
        """Close a connection that is one too many."""
        self._leave_probes()
        if self._asking:
            self.transport.abort()
        elif not self.transport.is_closing():
            most = self.limits.connections
            self._refuse(429, "busy", f"{most} connections are open already. Try again when some are closed.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer before there is a request, and close. Whose API was meant is not known: this is OpenAI's form."""
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
    """Return the kind of connection that a server with these limits has."""
    return type("Connection", (BoundedConnection,), {"limits": limits, "probes": []})
