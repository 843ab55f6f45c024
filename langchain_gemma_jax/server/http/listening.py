"""Sockets that a server listens at: a Unix socket in a folder of this user's alone, or a port."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.file_locks import Hold, give_back, try_hold
from langchain_gemma_jax.private.folder import Folder, UnsafeFolderError, open_folder

LONGEST = 107 if sys.platform.startswith("linux") else 103  # bytes of a socket's path, by the system
_BACKLOG = 1024


@dataclass
class Listening:
    """A socket that a server listens at, until it is closed."""

    socket: socket.socket
    shown: str  # its address for clients
    _folder: Folder | None = field(default=None, repr=False)
    _hold: Hold | None = field(default=None, repr=False)
    _name: str = ""

    @property
    def page(self) -> str:
        """The address of the page for a browser on this machine, where a server that listens everywhere is too."""
        return f"{self.shown.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')}/"

    def close(self) -> None:
        """Stop listening, and remove the socket's files. May be called twice."""
        self.socket.close()
        folder, hold, self._folder, self._hold = self._folder, self._hold, None, None
        if folder is not None and hold is not None:
            with suppress(OSError):
                folder.remove(self._name)
                give_back(folder, _lock_of(self._name), hold)


def listen_at_socket(path: str | os.PathLike[str]) -> Listening:
    """Listen at a Unix socket that this user alone can open.

    Raises:
        InputError: the path is too long, another server listens there, or other users can write to its folder.
    """
    place = Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100  symlinks are not resolved
    if len(os.fsencode(place)) > LONGEST:
        raise InputError(
            f"--socket: {place} has {len(os.fsencode(place))} bytes, and a socket's path has at most {LONGEST}. Name a "
            "shorter one: --socket /run/user/$UID/gemma.sock, and ChatGemmaJax(server='unix:/run/user/...')"
        )
    try:
        folder = open_folder(place.parent, place.parent)
        hold = try_hold(folder, _lock_of(place.name), os.O_RDWR | os.O_CREAT)
    except UnsafeFolderError as error:
        raise InputError(
            f"--socket: {error} Name a socket in a folder of your own, which is made if it is missing."
        ) from None
    except OSError as error:
        raise InputError(f"--socket: {place} cannot be made: {error.strerror or error}.") from None
    if hold is None:
        raise _in_use(place)
    try:
        _clear(folder, place)
        found = socket.socket(socket.AF_UNIX)
        try:
            found.bind(str(place))
            place.chmod(0o600)  # before any client can connect
            found.listen(_BACKLOG)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        give_back(folder, _lock_of(place.name), hold)
        raise InputError(f"--socket: {place} cannot be made: {error.strerror or error}.") from None
    except BaseException:
        give_back(folder, _lock_of(place.name), hold)
        raise
    return Listening(found, f"unix:{place}", folder, hold, place.name)


def listen_at_port(host: str, port: int) -> Listening:
    """Listen at a port of one of this machine's addresses.

    Raises:
        InputError: the port is in use, or the address is not one of this machine.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(_BACKLOG)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"--port: {port} of {host} is in use by another program. Take another, or 0.") from None
        raise InputError(f"--host, --port: {host}:{port} cannot be listened at: {error.strerror or error}.") from None
    bound = found.getsockname()
    shown = f"[{bound[0]}]" if family == socket.AF_INET6 else bound[0]
    return Listening(found, f"http://{shown}:{bound[1]}")


def is_loopback(host: str) -> bool:
    """Return True for an address that only programs on this machine can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def _lock_of(name: str) -> str:
    return f"{name}.lock"


def _clear(folder: Folder, place: Path) -> None:
    """Remove the socket file of a server that has ended without removing it.

    Raises:
        InputError: a program listens there, or the file is no socket of this user's.
    """
    try:
        facts = folder.stat(place.name)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != os.geteuid():
        raise InputError(f"--socket: {place} is there already, and is no socket of yours. Name another one.")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(place))
        except (ConnectionRefusedError, FileNotFoundError):
            folder.remove(place.name)
            return
        except OSError:
            pass
    raise _in_use(place)


def _in_use(place: Path) -> InputError:
    return InputError(
        f"--socket: a server listens at {place} already. Use it: ChatGemmaJax(server='unix:{place}'); end it; or name "
        "another socket for this one."
    )
