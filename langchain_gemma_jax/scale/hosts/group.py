"""The start and the end of a group of hosts: each process's number, the leader's address, and the check of the key."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn

from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.errors import HostLostError, InputError, InstallationError
from langchain_gemma_jax.scale.hosts.frames import FrameSocket
from langchain_gemma_jax.scale.hosts.line import SILENCE, Line, OtherKeyError

TOGETHER = 300.0  # seconds that the processes wait for each other at the start
LAST_RESORT = 8.0  # seconds after a loss at which the leader exits, even if open calls have no answer yet
_AGAIN = 0.3  # seconds between two tries to reach the leader
_LOOK = 0.1  # seconds between two checks of the followers that have joined
_AT_ONCE = 128  # connections that have not shown the key yet: above this, the oldest one is closed
_log = OwnLog(__name__)


@dataclass(frozen=True)
class GroupPlan:
    """A group of hosts, and the place of this process in it."""

    hosts: int
    """The number of processes, the leader included."""
    number: int
    """The number of this process: 0 leads, the others follow."""
    leader: str
    """The leader's address for the others: HOST:PORT. PORT is JAX's, and PORT + 1 is used for the lines."""
    key: bytes = field(repr=False)
    """The secret key that the processes of the group share."""

    def __post_init__(self) -> None:
        if self.hosts < 2:
            raise InputError(
                f"--hosts: expected 2 at least, found {self.hosts}. One host needs no group: leave it out."
            )
        if not 0 <= self.number < self.hosts:
            raise InputError(
                f"--host-number: expected 0 for the host that leads, or up to {self.hosts - 1} for one that follows, "
                f"found {self.number}."
            )
        host, port = self.address
        if not host or not 0 < port < 2**16 - 1:
            raise InputError(f"--leader: expected HOST:PORT, as in 10.0.0.1:8476, found {self.leader!r}.")

    @property
    def address(self) -> tuple[str, int]:
        """The leader's host and port."""
        host, _, port = self.leader.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port) if port.isdecimal() else 0


@contextmanager
def leading(plan: GroupPlan) -> Iterator[Any]:
    """Lead a group: gives its ``Leader`` once all followers have joined, and ends them with the block.

    If a follower is lost, this process exits with status 2: at the end of the block, or after ``LAST_RESORT`` seconds.

    Raises:
        HostLostError: followers did not join in time. InstallationError: they run other versions.
    """
    lines = _followers(plan)
    from langchain_gemma_jax.scale.hosts.leader import Leader

    leader = Leader(lines)
    leader.when_lost(_end_soon)
    leader.begin()
    try:
        leader.devices = _join(plan)
        leader.is_together()
        yield leader
    finally:
        if leader.lost is not None:
            _end_lost(leader.lost)
        with suppress(HostLostError):
            leader.end()
        _leave()


def follow(plan: GroupPlan) -> NoReturn:
    """Follow the leader of a group until the group ends, and exit.

    Raises:
        HostLostError: the leader was not there in time. InstallationError: it runs other versions.
    """
    line = _to_leader(plan)
    from langchain_gemma_jax.scale.hosts.follower import Follower

    follower = Follower(line)
    follower.begin()
    follower.devices = _join(plan)
    line.patience = SILENCE
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)  # the leader lets open answers finish first, and then ends the followers
    follower.follow()
    _leave()
    _end(0)  # without Python's clean-up: a thread may be in JAX, which would crash


def _followers(plan: GroupPlan) -> list[Line]:
    """Wait until all followers have joined, and return the lines to them, in their order."""
    host, port = plan.address
    until = time.monotonic() + TOGETHER
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise InputError(f"--leader: {host!r} is no address of this host: {error}.") from error
    with socket.create_server((host, port + 1), family=family, backlog=_AT_ONCE) as server:
        server.settimeout(_LOOK)
        door = _Door(plan)
        while missing := door.missing():
            if time.monotonic() > until:
                raise HostLostError(
                    f"These hosts of the group did not come to {plan.leader} within {TOGETHER:g} s: "
                    f"{', '.join(map(str, missing))}. Start them with the same --hosts, --leader and --hosts-key-file."
                )
            with suppress(TimeoutError):
                door.welcome(server.accept()[0])
        lines = door.close()
    for line in lines:
        line.send({"do": "join"})
    return lines


class _Door:
    """Admits followers. Each connection has a thread and a few seconds, so that strangers hold up no follower."""

    def __init__(self, plan: GroupPlan) -> None:
        self._plan, self._versions = plan, _versions()  # before the first connection, as it imports JAX
        self._lock = threading.Lock()
        self._found: dict[int, Line] = {}
        self._unproven: dict[int, FrameSocket] = {}  # oldest first
        self._numbers = count()
        self._refused: InstallationError | None = None
        self._closed = False

    def missing(self) -> list[int]:
        """Return the numbers of the followers that have not joined, or have left again.

        Raises:
            InstallationError: a follower with another version was refused.
        """
        with self._lock:
            if self._refused is not None:
                raise self._refused
            for number in [number for number, line in self._found.items() if line.is_broken]:
                self._found.pop(number).close()
            return sorted({*range(1, self._plan.hosts)} - set(self._found))

    def welcome(self, connected: socket.socket) -> None:
        """Check a new connection in a thread of its own. It joins if it is a missing follower's."""
        frames, ticket = _frames(connected), next(self._numbers)
        with self._lock:
            if len(self._unproven) >= _AT_ONCE:
                self._unproven.pop(next(iter(self._unproven))).close()
            self._unproven[ticket] = frames
        threading.Thread(target=self._welcome, args=(ticket, frames), name="gemma-jax-hosts", daemon=True).start()

    def close(self) -> list[Line]:
        """Admit no more connections, and return the lines to the followers, in their order."""
        with self._lock:
            self._closed = True
            unproven, self._unproven = self._unproven, {}
        for frames in unproven.values():
            frames.close()
        return [self._found[number] for number in sorted(self._found)]

    def _welcome(self, ticket: int, frames: FrameSocket) -> None:
        try:
            line = Line(frames, self._plan.key, leads=True)
            message, _ = line.receive(time.monotonic() + SILENCE)
            self._admit(ticket, line, message)
        except (HostLostError, InstallationError) as error:
            frames.close()
            if isinstance(error, InstallationError):
                self._refused = error
            elif not self._closed:
                _log.warning("a connection to the leader did not come from a host of the group: %s", error)
        finally:
            with self._lock:
                self._unproven.pop(ticket, None)

    def _admit(self, ticket: int, line: Line, message: dict[str, Any]) -> None:
        """Admit a host that has shown the key, if it is a missing follower.

        Raises:
            InstallationError: it runs other versions. HostLostError: another one with its number was admitted first, or
                the group is complete.
        """
        number, missing = message.get("number"), self.missing()
        if number not in missing:
            others = ", ".join(map(str, missing))
            why = f"it is number {number}, and those that the leader still waits for are {others}."
            line.send({"do": "refused", "why": why})
            _log.warning("a host cannot join the group: %s", why)
            line.close()
            return
        if message.get("versions") != self._versions:
            why = f"it runs {message.get('versions')}, and the leader {self._versions}. Install the same on all hosts."
            line.send({"do": "refused", "why": why})
            raise InstallationError(f"Host {number} of the group cannot join: {why}")
        with self._lock:
            if self._closed or self._found.setdefault(int(number), line) is not line:
                raise HostLostError("another one of its number came at the same time")
            # Proven in the same moment: what is unproven when the door closes is closed with it.
            self._unproven.pop(ticket, None)
        line.beat()


def _to_leader(plan: GroupPlan) -> Line:
    """Connect to the leader, and wait until all followers have joined. Failed attempts are repeated.

    Raises:
        HostLostError: it was not there in time, or has another key. InstallationError: it refused this host.
    """
    versions, until = _versions(), time.monotonic() + TOGETHER
    while True:
        try:
            return _joined(plan, versions)
        except OtherKeyError:
            raise
        except (OSError, HostLostError) as error:
            if time.monotonic() > until:
                raise HostLostError(
                    f"The leader of the group was not at {plan.leader} within {TOGETHER:g} s: {error}. Start it with "
                    "--host-number 0, and see that the other hosts reach that port and the one behind it."
                ) from error
            time.sleep(_AGAIN)


def _joined(plan: GroupPlan, versions: list[str]) -> Line:
    """Try once to join the group, and return the line to the leader.

    Raises:
        OSError, HostLostError: the leader is not there, or went away. InstallationError: it refused this host.
    """
    host, port = plan.address
    frames = _frames(socket.create_connection((host, port + 1), timeout=SILENCE))
    try:
        line = Line(frames, plan.key, leads=False)
        line.send({"do": "hello", "number": plan.number, "versions": versions})
        message: dict[str, Any] = {"do": "beat"}
        while message["do"] == "beat":
            message, _ = line.receive()
    except BaseException:
        frames.close()
        raise
    if message["do"] == "refused":
        frames.close()
        raise InstallationError(f"This host cannot join the group: {message['why']}")
    line.beat()
    return line


def _frames(connected: socket.socket) -> FrameSocket:
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return FrameSocket(connected)


def _versions() -> list[str]:
    import jax

    from langchain_gemma_jax import __version__

    return [f"langchain-gemma-jax {__version__}", f"jax {jax.__version__}"]


def _join(plan: GroupPlan) -> tuple[Any, ...]:
    """Initialize JAX for the whole group, and return the group's devices, the leader's first."""
    import jax

    jax.config.update("jax_enable_preemption_service", False)  # else JAX handles SIGTERM
    jax.distributed.initialize(
        plan.leader,
        plan.hosts,
        plan.number,
        cluster_detection_method="deactivate",
        initialization_timeout=int(TOGETHER),
        shutdown_timeout_seconds=int(LAST_RESORT),
        coordinator_bind_address=plan.leader,  # else it listens at all addresses of this machine
    )
    return tuple(sorted(jax.devices(), key=lambda device: (device.process_index, device.id)))


def _leave() -> None:
    import jax

    with suppress(RuntimeError):  # another process has left first
        jax.distributed.shutdown()


def _end_soon(lost: HostLostError) -> None:
    """Exit after ``LAST_RESORT`` seconds, so that open calls get their error first if that is possible."""

    def end() -> None:
        time.sleep(LAST_RESORT)
        _end_lost(lost)

    threading.Thread(target=end, name="gemma-jax-hosts", daemon=True).start()


def _end_lost(lost: HostLostError) -> NoReturn:
    """Exit now, with status 2: a thread may be in a program that will never end."""
    sys.stderr.write(f"gemma-jax: {lost}\n")
    _end(2)


def _end(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
