"""Addresses of servers: the socket of this user's own server, another socket, or a port."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from langchain_gemma_jax.config import SERVER_OFF, cache_dir
from langchain_gemma_jax.errors import InputError

AUTO = "auto"
OURS = "/gemma-jax/"
PATH = f"{OURS}2/"  # of the calls; the number is the version of the forms
SESSION = "x-session-id"  # the header by which routers keep conversations together
DEADLINE = "x-deadline-s"  # the header with the seconds that are left for a call
HOW_TO_START = "Start one: gemma-jax serve"
FORMS = '"auto" for this user\'s own, "unix:/path/to/a.sock", "http://127.0.0.1:8000", or "off" for this process itself'


_BELOW = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True)
class Address:
    """A server's address: a Unix socket's path, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0
    below: str = ""
    """The path that the server is mounted at, on a router that has several."""

    @property
    def is_local(self) -> bool:
        """True for a Unix socket: only users of this machine with access to its file can connect."""
        return bool(self.path)

    @property
    def header(self) -> str:
        """The host that a request names in its header."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}" if self.host else "localhost"

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"http://{self.header}{self.below}"


def default_socket() -> Path:
    """Return the path of this user's own server's socket, which need not exist."""
    return cache_dir() / "server" / "engine.sock"


def address_of(server: object) -> Address | None:
    """Return the address that a user names; None for this process itself.

    Raises:
        InputError: ``server`` is no address.
    """
    if server in (None, SERVER_OFF):
        return None
    if server == AUTO:
        return Address(path=str(default_socket()))
    if isinstance(server, str) and server.startswith("unix:"):
        path = server.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        if path.startswith(("/", "~")) and "\0" not in path:
            return Address(path=str(Path(path).expanduser()))
    elif isinstance(server, str) and server.startswith("http://") and server.isprintable():
        try:
            parts = urlsplit(server)
            host, port = parts.hostname, parts.port or 80
        except ValueError:
            host, port = None, 0
        plain = host and host.isascii() and not any(mark.isspace() or not mark.isprintable() for mark in host)
        below = parts.path.rstrip("/").removesuffix("/v1")
        if host and plain and _BELOW.fullmatch(below) and not (parts.query or parts.fragment or parts.username):
            return Address(host=host, port=port, below=below)
    hint = " For https, have a proxy on this machine speak it." if str(server).startswith("https:") else ""
    raise InputError(f"server: expected {FORMS}; found {server!r}.{hint}")
