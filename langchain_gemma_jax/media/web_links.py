"""Links to images, sounds and documents: fetched from public addresses, within bounds, or not at all.

Any author of a conversation can write a link in it, and this process sends the request. So an address is checked after
its name was resolved, and the connection is made to that same address: a name that stands for another machine a moment
later changes nothing. Each redirect is checked like the first link. No proxy, no cookie and no password is used.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit

from langchain_gemma_jax.errors import MediaAccessError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.block_forms import check_bytes
from langchain_gemma_jax.stopping import check, current

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_REDIRECTS = {301, 302, 303, 307, 308}
_PIECE = 64 * 1024
_ASKED = {
    "User-Agent": "langchain-gemma-jax",
    "Accept": "image/*, audio/*, application/pdf;q=0.9, */*;q=0.1",
    "Accept-Encoding": "identity",  # compressed content may be larger than its length says
    "Connection": "close",
}


class Resolver(Protocol):
    """A function that returns the addresses of a name, such as ``socket.getaddrinfo``."""

    def __call__(self, host: str, port: int, *, type: int) -> list[tuple[object, ...]]: ...  # noqa: A002  getaddrinfo's name


def is_public(address: IpAddress) -> bool:
    """Return True for an address of the public internet: not private, not this machine, not a cloud's own service."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or _translated(address)
        if inner is not None:  # an IPv4 address in an IPv6 one
            return is_public(inner)
    return address.is_global and not address.is_multicast and not address.is_reserved


@dataclass(frozen=True)
class LinkReader:
    """Fetches links. Tests, which have no internet, replace its two functions."""

    allows: Callable[[IpAddress], bool] = is_public
    resolve: Resolver = socket.getaddrinfo  # type: ignore[assignment]

    def read(self, link: str, *, most: int, seconds: float, redirects: int, at: str) -> bytes:
        """Return the content at a link, after at most ``redirects`` redirects.

        Raises:
            MediaAccessError: it is no public http or https link, or redirects to what is none; MediaLimitError: it
            takes too long, is too large, or redirects too often; UnreadableMediaError: no content came.
        """
        until = time.monotonic() + seconds
        for _ in range(redirects + 1):
            parts = _checked(link, at)
            found = self._asked(parts, most, until, at)
            if isinstance(found, bytes):
                return found
            link = urljoin(link, found)
            if parts.scheme == "https" and not link.lower().startswith("https:"):
                raise MediaAccessError(at, "the link leads from https to a place without it")
        raise MediaLimitError(at, f"the link leads on more than {redirects} times", "redirects")

    def _asked(self, parts: SplitResult, most: int, until: float, at: str) -> bytes | str:
        """Return what one server answers: the content, or the link that it redirects to."""
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        connection = _ToOneAddress(
            host, port, self._addresses(host, port, until, at), until, secure=parts.scheme == "https"
        )
        watch = threading.Timer(max(0.0, until - time.monotonic()), connection.break_off)
        watch.daemon = True
        watch.start()  # a socket's timeout begins again with each byte, so a slow server would never reach it
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            with current().then(connection.break_off):
                connection.request("GET", target, headers=_ASKED)
                with connection.getresponse() as response:
                    return _content(response, most, at)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, UnreadableMediaError | MediaLimitError | MediaAccessError):
                raise
            _check_time(until, at)
            raise UnreadableMediaError(
                at, f"{host} gave nothing ({type(error).__name__}: {str(error)[:100]})"
            ) from error
        finally:
            watch.cancel()
            connection.close()
            _check_time(until, at)

    def _addresses(self, host: str, port: int, until: float, at: str) -> list[str]:
        """Return the addresses of a name, once all of them were found to be allowed."""
        found: list[list[tuple[str, IpAddress]]] = []
        over = threading.Event()

        def look() -> None:
            with suppress(Exception):  # what a resolver raises, or returns, can be anything
                answers = self.resolve(host, port, type=socket.SOCK_STREAM)
                found.append([_address(each) for each in answers])
            over.set()

        looking = threading.Thread(target=look, name="gemma-jax-resolves-a-name", daemon=True)
        looking.start()  # in a thread of its own, as a look-up cannot be interrupted
        with current().then(over.set):
            over.wait(max(0.0, until - time.monotonic()))
        _check_time(until, at)
        if not found or not found[0]:
            raise UnreadableMediaError(at, f"there is no machine called {host[:100]!r}")
        for address, meant in found[0]:
            if not self.allows(meant):
                raise MediaAccessError(
                    at, f"{host[:100]} is at {address}, which is no address of the public internet. Links to this "
                    "machine and to private networks are never followed: give the bytes",
                )  # fmt: skip
        return [address for address, _ in found[0]]


class _ToOneAddress(http.client.HTTPConnection):
    """A connection to addresses that were checked, whatever the name stands for by now."""

    def __init__(self, host: str, port: int, addresses: list[str], until: float, *, secure: bool) -> None:
        super().__init__(host, port, timeout=max(0.1, until - time.monotonic()))
        self._addresses, self._until, self._secure = addresses, until, secure
        self._open: socket.socket | None = None  # like ``sock``, which is dropped while the answer is still read

    def connect(self) -> None:
        error: OSError | None = None
        for address in dict.fromkeys(self._addresses):
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                self.sock = socket.create_connection((address, self.port), left)
                break
            except OSError as found:
                error = found
        else:
            raise error or OSError("no address")
        self._open = self.sock
        if self._secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
        self._open = self.sock

    def break_off(self) -> None:
        """Shut the socket down, which ends every wait for it. Any thread may call this."""
        if (sock := self._open) is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it is over already


def _checked(link: str, at: str) -> SplitResult:
    try:
        parts = urlsplit(link)
        legal = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:
        legal = False
    if not legal or not link.isascii() or any(character <= " " or character == "\x7f" for character in link):
        raise MediaAccessError(at, f"expected a link such as https://example.org/image.png, found {link[:100]!r}")
    if parts.username is not None or parts.password is not None:
        raise MediaAccessError(at, "the link holds a name or a password, which is sent to no server")
    return parts


def _address(answer: tuple[object, ...]) -> tuple[str, IpAddress]:
    """Return the address that a resolver gave, as text and parsed."""
    address = str(answer[4][0])  # type: ignore[index]
    return address, ipaddress.ip_address(address.partition("%")[0])


def _content(response: http.client.HTTPResponse, most: int, at: str) -> bytes | str:
    if response.status in _REDIRECTS and (place := response.getheader("Location")):
        return place
    if response.status != 200:
        raise UnreadableMediaError(at, f"the link's server says {response.status} {response.reason[:60]}")
    if response.getheader("Content-Encoding", "identity").lower() != "identity":
        raise UnreadableMediaError(at, "the link's server packs what it was asked not to pack")
    check_bytes(response.length or 0, most, at)
    found = bytearray()
    while piece := response.read1(_PIECE):
        found += piece
        check_bytes(len(found), most, at)
    if response.length:
        raise UnreadableMediaError(at, f"the connection ended {response.length:,} bytes too early")
    return bytes(found)


def _check_time(until: float, at: str) -> None:
    check()
    if time.monotonic() >= until:
        raise MediaLimitError(at, "the link took longer than it may", "seconds")


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address in an IPv6 one that a network translates (RFC 6052)."""
    if address in ipaddress.IPv6Network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
