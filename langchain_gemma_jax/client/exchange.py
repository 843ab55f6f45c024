"""One request and its answer, line by line: in the caller's thread, or in its event loop.

Each call has a connection of its own. Closing it cancels the call at the server, and opening one takes a tenth of a
millisecond.
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
HOSTS = "x-gemma-jax-hosts"  # the header of a server with a group of hosts: the loss of one of them ends the group
GRACE_SECONDS = 2.0  # for the server's own deadline error, which lists where the time went
NO_SUCH_CALL = (HTTPStatus.NOT_FOUND, "RequestError")  # a server's answer for a path that it does not have
_READ = 65536
_MOST_GROUPS = 1024

_groups: dict[Address, int] = {}  # servers with a group that have answered in this process, with their hosts


@dataclass(frozen=True)
class WireRequest:
    """A request: its address, path and body, and the deadline of its answer."""

    address: Address
    what: str  # the name of one of the server's calls
    body: bytes = field(repr=False)  # like the key it must not be in a log: it is a user's text
    key: str | None = field(default=None, repr=False)
    until: float | None = None  # by time.monotonic()
    session: str | None = None  # the conversation, for routers in front of several engines

    @property
    def request(self) -> bytes:
        """The bytes that are sent."""
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        if self.session is not None:
            headers[SESSION] = self.session
        if self.until is not None:  # the server has it from the body; this is for routers on the way
            headers[DEADLINE] = f"{max(0.0, self.until - time.monotonic()):.3f}"
        return request(self.address.below + PATH + self.what, self.address.header, self.body, headers)

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the next piece. None: for ever."""
        return None if self.until is None else max(0.0, self.until + GRACE_SECONDS - time.monotonic())

    @property
    def too_late(self) -> DeadlineError:
        """The error of a call that was not answered in time."""
        return DeadlineError(f"The time was up, and the server at {self.address} had not answered. Allow more time.")


class WireAnswer:
    """An answer as it arrives: one object a line, and a last line that marks the end."""

    def __init__(self, asked: WireRequest) -> None:
        self._asked, self._response = asked, ResponseReader()
        self.is_over = False

    def take(self, data: bytes) -> list[dict[str, Any]]:
        """Return the objects that the next bytes complete. Empty bytes are the connection's end.

        Raises:
            GemmaJaxError: the server sent an error, or what it sent is no answer.
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
            item = self._read(line)
            if "error" in item:
                raise error_in(item["error"])
            if "warning" in item:
                warned(item["warning"], self._asked.address)
                continue
            if "end" in item:
                self.is_over = True
                return found
            found.append(item)
        if not data or self._response.is_whole:
            raise lost(self._asked.address)
        return found

    def _read(self, line: bytes) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            if isinstance(item := json.loads(line), dict):
                return item
        raise lost(self._asked.address)

    def _refused(self, body: bytes) -> GemmaJaxError:
        with suppress(ValueError, RecursionError):
            answer = json.loads(body)
            if isinstance(answer, dict) and isinstance(answer.get("error"), dict) and "name" in answer["error"]:
                if (self._response.status, answer["error"]["name"]) == NO_SUCH_CALL:
                    return ServerError(
                        f"The server at {self._asked.address} has no {PATH}{self._asked.what}: client and server are "
                        "not of one version. Install the same one of langchain-gemma-jax for both."
                    )
                return error_in(answer["error"])
        return _refused_on_the_way(self._asked.address, self._response.status)


def _note_group(address: Address, hosts: str) -> None:
    """Note that the engine at an address is a group of hosts, if its answer says so."""
    if hosts.isdecimal() and len(_groups) < _MOST_GROUPS:
        _groups[address] = int(hosts[:9])


def ask(asked: WireRequest) -> Generator[dict[str, Any], None, None]:
    """Yield the objects of an answer, read in this thread. Closing the generator ends the work at the server."""
    with _connected(asked) as line:
        answer, sent = WireAnswer(asked), asked.request
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have refused already: its answer says why
                line.sendall(sent)
            while not answer.is_over:
                line.settimeout(asked.patience)
                yield from answer.take(line.recv(_READ))
        except GemmaJaxError:  # one of these is a TimeoutError, too: the server sent it
            raise
        except TimeoutError:
            raise asked.too_late from None
        except OSError as error:
            raise lost(asked.address) from error


async def aask(asked: WireRequest) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the objects of an answer, as ``ask`` does, without blocking the event loop."""
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
        writer.transport.abort()  # without waiting, as the call may have been cancelled


def _refused_on_the_way(address: Address, status: int) -> GemmaJaxError:
    """Return the error of a response that is not in our form: a router in front of the engine sent it."""
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
    """Return the error of an address that no server answers at."""
    reason = getattr(error, "strerror", None) or str(error) or "it does not answer"
    place = f" --socket {address.path}" if address.is_local and not _is_default(address) else ""
    if not address.is_local:
        place = f" --host {address.host} --port {address.port}"
    return ServerUnreachableError(f"No engine answers at {address} ({reason}). {HOW_TO_START}{place}")


def lost(address: Address) -> ServerUnreachableError | HostLostError:
    """Return the error of a connection that ended before the answer did."""
    if (hosts := _groups.get(address)) is not None:
        return HostLostError(
            f"The host that leads the group of {hosts} at {address} is lost, and the group ended with it. Ask again: "
            "the same call may succeed once the group has restarted."
        )
    return ServerUnreachableError(
        f"The server at {address} went away in the middle of its answer. Ask again: the same call may succeed once it "
        "has restarted."
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
    """Refuse a socket that another user's program listens at: it could read the conversation.

    Raises:
        ServerError: the listener runs as another user.
    """
    import os

    if not sys.platform.startswith("linux"):
        return  # there, only the permissions of the socket's folder protect it
    _, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user not in {os.geteuid(), 0}:
        raise ServerError(
            f"The server at {address} is run by user {user}, who could read what is asked. Start your own."
        )
