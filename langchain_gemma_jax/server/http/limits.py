"""How much, how many and how long: the bounds of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """The bounds of a server, in seconds, bytes and connections."""

    body_bytes: int = 16 * 1024 * 1024
    """The most bytes of a request."""
    connections: int = 512
    """The most connections at once. One more is told to come back, and closed."""
    head_s: float = 20.0
    """How long a connection may take to say what it wants."""
    body_s: float = 60.0
    """How long a request may take to arrive."""
    stalled_s: float = 60.0
    """How long a client may leave what it was sent unread."""
    call_s: float | None = None
    """How long a call may take, whatever its client allows. None: as long as that."""
    drain_s: float = 30.0
    """How long answers may go on when the server is told to end."""
