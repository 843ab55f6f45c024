"""The limits of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """The limits of a server, in seconds, bytes and connections."""

    body_bytes: int = 16 * 1024 * 1024
    """The most bytes of a request's body."""
    bodies_bytes: int = 512 * 1024 * 1024
    """The most bytes of all bodies in memory. Above it, a large request is refused, and may be tried again."""
    head_bytes: int = 64 * 1024
    """The most bytes of a request's head: its path and its header fields."""
    head_fields: int = 100
    """The most header fields of a request."""
    connections: int = 512
    """The most connections at once. One more is refused and closed, unless it asks for /health or /ready."""
    probes: int = 16
    """Connections on top of those, for /health and /ready only."""
    head_s: float = 20.0
    """The most seconds until the head of a connection's next request has arrived."""
    body_s: float = 60.0
    """The most seconds until a request's body has arrived."""
    stalled_s: float = 60.0
    """The most seconds that a client may read nothing of what was sent."""
    call_s: float | None = None
    """The most seconds of a call, even if its client allows more. None: the client decides."""
    drain_s: float = 30.0
    """The most seconds that open answers may go on after the server was asked to end."""
