"""Requests to another replica for its prefixes: each ends within the time that it was given, however slow the peer."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

PATH: Final = "/kv/"  # of a server's prefixes
PART: Final = 2**24  # bytes that one request gets at most
_OK: Final = (200, 206)


class PeerError(Exception):
    """A peer gave no answer that can be used. The message says why."""


class KeyRefusedError(PeerError):
    """A peer has another key."""


@dataclass(frozen=True)
class PeerAddress:
    """One replica's server."""

    secure: bool
    host: str
    port: int
    base: str = ""  # the path that the server is mounted at

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.secure}://{host}:{self.port}{self.base}"


@dataclass(frozen=True)
class PeerAnswer:
    """An answer: ``body`` is None if nothing changed since ``tag`` was given."""

    tag: str
    body: bytearray | None


def addresses_of(url: str) -> list[PeerAddress]:
    """Return the servers of a URL: one for each address of its name, as a headless service has them.

    A certificate is for a name, so behind ``https`` there is one server.

    Raises:
        OSError: the name is not known.
    """
    asked = urlsplit(url)
    host, secure = asked.hostname or "", asked.scheme == "https"
    port, base = asked.port or (443 if secure else 80), asked.path.rstrip("/")
    if secure:
        return [PeerAddress(True, host, port, base)]
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [PeerAddress(False, str(each), port, base) for each in dict.fromkeys(where[4][0] for where in found)]


def ask(
    peer: PeerAddress,
    what: str,
    token: str,
    seconds: float,
    *,
    known: str = "",
    span: tuple[int, int] | None = None,
    most: int = PART,
) -> PeerAnswer:
    """Ask a peer, and return its answer.

    Args:
        peer: the server.
        what: the rest of the path.
        token: proves that this replica has the key.
        seconds: the time for all of it, after which the connection is closed.
        known: the tag of an earlier answer; if it is still true there is no body.
        span: the first byte, and the one after the last. None: all.
        most: bytes of an answer that are taken at most.

    Raises:
        PeerError: there is no answer, it came too late, or it is not what was asked for.
    """
    head = {"authorization": f"Bearer {token}"}
    if known:
        head["if-none-match"] = known
    if span is not None:
        head["range"] = f"bytes={span[0]}-{span[1] - 1}"
        most = span[1] - span[0]
    kind = http.client.HTTPSConnection if peer.secure else http.client.HTTPConnection
    connection = kind(peer.host, peer.port, timeout=seconds)
    try:
        connection.connect()
        with _ended_after(seconds, connection.sock):
            connection.request("GET", peer.base + PATH + what, headers=head)
            response = connection.getresponse()
            tag = response.headers.get("etag", "")
            if response.status == 304:
                return PeerAnswer(tag, None)
            if response.status == 401:
                raise KeyRefusedError("it has another key")
            if response.status not in _OK:
                raise PeerError(f"it answered with status {response.status}")
            return PeerAnswer(tag, _body(response, most, exactly=span is not None))
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise PeerError(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


def _body(response: http.client.HTTPResponse, most: int, *, exactly: bool) -> bytearray:
    size = response.length
    if size is None or size > most or (exactly and size != most):
        raise PeerError(f"it answered with {size} bytes, where {most} are expected")
    body = bytearray(size)
    rest = memoryview(body)
    while rest:
        got = response.readinto(rest)
        if not got:
            raise PeerError(f"its answer ended {len(rest)} bytes early")
        rest = rest[got:]
    return body


@contextmanager
def _ended_after(seconds: float, connected: socket.socket) -> Iterator[None]:
    """Cut a connection off when its time is up: a socket's own limit begins again with each byte."""

    def cut() -> None:
        with suppress(OSError):  # it may be closed by now
            connected.shutdown(socket.SHUT_RDWR)

    clock = threading.Timer(seconds, cut)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
