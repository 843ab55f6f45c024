"""One request and its answer, line by line: in the caller's thread, or in its event loop.

Each call has a connection of its own: closing it is how a server learns that nobody waits any more, and making one
takes a tenth of a millisecond.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from langchain_gemma_jax.client.http_response import ResponseReader, request
from langchain_gemma_jax.errors import (
    BusyError,
    DeadlineError,
    GemmaJaxError,
    HostLostError,
    ServerError,
    ServerUnreachableError,
)
from langchain_gemma_jax.wire.addresses import DEADLINE, HOW_TO_START, PATH, SESSION, Address
from langchain_gemma_jax.wire.error_forms import error_in
from langchain_gemma_jax.wire.warning_forms import warned

CONNECT_SECONDS = 5.0
HOSTS = "x-gemma-jax-hosts"  # the header of a server whose engine is of several hosts, which end with one of them
GRACE_SECONDS = 2.0  # for the server to say itself that the time was up: it knows what it went into
_READ = 65536
_MOST_GROUPS = 1024

_groups: dict[Address, int] = {}  # servers of several hosts that have answered in this process, and of how many


@dataclass(frozen=True)
class WireRequest:
    """A request: its address, path and body, and how long its answer may take."""

    address: Address
    what: str  # of the server's calls
    body: bytes = field(repr=False)  # somebody's words, and the key: in no log
    key: str | None = field(default=None, repr=False)
    until: float | None = None  # by time.monotonic()
    session: str | None = None  # whose conversation it is, for routers in front of several engines

    @property
    def request(self) -> bytes:
        """The bytes that are sent."""
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        if self.session is not None:
            headers[SESSION] = self.session
        if self.until is not None:  # the body says it too, to the server; this is for whatever is on the way
            headers[DEADLINE] = f"{max(0.0, self.until - time.monotonic()):.3f}"
        return request(self.address.below + PATH + self.what, self.address.header, self.body, headers)

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the next piece. None: for ever."""
        return None if self.until is None else max(0.0, self.until + GRACE_SECONDS - time.monotonic())

    @property
    def too_late(self) -> DeadlineError:
        """The error of whoever waited in vain."""
        return DeadlineError(f"The time was up, and the server at {self.address} had not answered. Allow more time.")


class WireAnswer:
    """What comes back: objects, a line each, of which the last one says that it is the last."""

    def __init__(self, asked: WireRequest) -> None:
        self._asked, self._response = asked, ResponseReader()
        self.is_over = False

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Return what is new in some bytes; none: the connection's end.

        Raises:
            GemmaJaxError: the server told an error, or what it told is no answer.
        """
        lines = self._response.take(data)
        _note_group(self._asked.address, self._response.headers.get(HOSTS, ""))
        if not data or self._response.is_whole:
            lines.append(self._response.rest())
        if self._response.status != 200:
            if self._response.is_whole or (not data and self._response.status):
                raise self._refused(b"\n".join(lines))
            if not data:
                raise lost(self._asked.address)
            return []
        found: list[dict[str, Any]] = []
        for line in filter(None, lines):
            told = self._read(line)
            if "error" in told:
                raise error_in(told["error"])
            if "warning" in told:
                warned(told["warning"], self._asked.address)
                continue
            if "end" in told:
                self.is_over = True
                return found
            found.append(told)
        if not data or self._response.is_whole:
            raise lost(self._asked.address)
        return found

    def _read(self, line: bytes) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            if isinstance(told := json.loads(line), dict):
                return told
        raise lost(self._asked.address)

    def _refused(self, body: bytes) -> GemmaJaxError:
        with suppress(ValueError, RecursionError):
            told = json.loads(body)
            if isinstance(told, dict) and isinstance(told.get("error"), dict) and "name" in told["error"]:
                return error_in(told["error"])
        return _refused_on_the_way(self._asked.address, self._response.status)


def _note_group(address: Address, hosts: str) -> None:
    """Note that the engine at an address is of several hosts, if its answer says so."""
    if hosts.isdecimal() and len(_groups) < _MOST_GROUPS:
        _groups[address] = int(hosts[:9])


def ask(asked: WireRequest) -> Generator[dict[str, Any], None, None]:
    """Give what comes back, in this thread. Closing the generator ends the work at the server."""
    with _connected(asked) as line:
        answer, sent = WireAnswer(asked), asked.request
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have refused already, and says why
                line.sendall(sent)
            while not answer.is_over:
                line.settimeout(asked.patience)
                yield from answer.take(line.recv(_READ))
        except GemmaJaxError:  # of which one is a TimeoutError, too: what the server said itself
            raise
        except TimeoutError:
            raise asked.too_late from None
        except OSError as error:
            raise lost(asked.address) from error


async def aask(asked: WireRequest) -> AsyncGenerator[dict[str, Any], None]:
    """Give what comes back, as ``ask`` does, while the event loop goes on."""
    import asyncio

    place = asked.address
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            if place.is_local:
                reader, writer = await asyncio.open_unix_connection(place.path)
            else:
                reader, writer = await asyncio.open_connection(place.host, place.port)
    except (OSError, TimeoutError) as error:
        raise unreachable(place, error) from error
    try:
        if place.is_local:
            _check_owner(writer.get_extra_info("socket"), place)
        answer = WireAnswer(asked)
        with suppress(BrokenPipeError, ConnectionResetError):
            writer.write(asked.request)
            async with asyncio.timeout(asked.patience):
                await writer.drain()
        while not answer.is_over:
            async with asyncio.timeout(asked.patience):
                data = await reader.read(_READ)
            for each in answer.take(data):
                yield each
    except GemmaJaxError:
        raise
    except TimeoutError:
        raise asked.too_late from None
    except OSError as error:
        raise lost(place) from error
    finally:
        writer.transport.abort()  # at once: who cancels does not wait


def _refused_on_the_way(address: Address, status: int) -> GemmaJaxError:
    """Return the error of an answer that is not in our form: a router in front of the engine made it."""
    place = f"{address} answered with status {status}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return BusyError(f"The router at {place}: too many requests wait. Ask again later, or have more replicas.")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerUnreachableError(
            f"The router at {place}: no engine behind it answered. Ask again: another one may take the call."
        )
    return ServerError(
        f"The server at {place}, and in no form that is known here. Is it gemma-jax serve, in the version of this "
        "package?"
    )


def unreachable(address: Address, error: BaseException) -> ServerUnreachableError:
    """Return the error of an address where nobody answers."""
    reason = getattr(error, "strerror", None) or str(error) or "it does not answer"
    place = f" --socket {address.path}" if address.is_local and not _is_default(address) else ""
    if not address.is_local:
        place = f" --host {address.host} --port {address.port}"
    return ServerUnreachableError(f"No engine answers at {address} ({reason}). {HOW_TO_START}{place}")


def lost(address: Address) -> ServerUnreachableError | HostLostError:
    """Return the error of a connection that ended before the answer did."""
    if (hosts := _groups.get(address)) is not None:
        return HostLostError(
            f"The host that leads the group of {hosts} at {address} is lost, and the group is at its end with it. Ask "
            "again: the same call may succeed when the group was started anew."
        )
    return ServerUnreachableError(
        f"The server at {address} went away in the middle of its answer. Ask again: the same call may succeed when it "
        "was started anew."
    )


def _is_default(address: Address) -> bool:
    from langchain_gemma_jax.wire.addresses import default_socket

    return address.path == str(default_socket())


def _connected(asked: WireRequest) -> socket.socket:
    place = asked.address
    try:
        if not place.is_local:
            return socket.create_connection((place.host, place.port), CONNECT_SECONDS)
        line = socket.socket(socket.AF_UNIX)
        try:
            line.settimeout(CONNECT_SECONDS)
            line.connect(place.path)
            _check_owner(line, place)
        except BaseException:
            line.close()
            raise
    except OSError as error:
        raise unreachable(place, error) from error
    return line


def _check_owner(line: Any, address: Address) -> None:
    """Refuse a socket that somebody else listens at: what is asked would be told to them.

    Raises:
        ServerError: it is another user's.
    """
    import os

    if not sys.platform.startswith("linux"):
        return  # the folder that the socket is in is all that is looked at
    _, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user not in {os.geteuid(), 0}:
        raise ServerError(
            f"The server at {address} is run by user {user}, who could read what is asked. Start your own."
        )
