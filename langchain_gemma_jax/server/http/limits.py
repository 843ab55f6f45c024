"""How much, how many and how long: the bounds of a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """The bounds of a server, in seconds, bytes and connections."""

    body_bytes: int = 16 * 1024 * 1024
    """The most bytes of a request."""
    bodies_bytes: int = 512 * 1024 * 1024
    """The most bytes of all requests that are received at once. One more that is large is told to come back."""
    head_bytes: int = 64 * 1024
    """The most bytes of what stands before a request's body."""
    head_fields: int = 100
    """The most fields of it."""
    connections: int = 512
    """The most connections at once. One more is told to come back, and closed; unless it asks how the server is."""
    probes: int = 16
    """Connections beside those, for whoever asks for /health or /ready."""
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
