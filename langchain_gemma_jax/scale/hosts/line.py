"""A line between the leader of a group and one follower: frames that only who has the group's key can make.

Both prove at the beginning that they have it, and what they prove with seals every frame: with its number, so that none
is lost, repeated or made up by somebody else. What is said can be read on the way.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from langchain_gemma_jax.errors import HostLostError

BEAT = 1.0  # seconds between two signs of life
SILENCE = 6.0  # seconds without one after which who is at the other end is lost
_LARGEST = 2**30  # bytes of a frame: a prompt has a few
_FIRST = 4096  # bytes that whoever has not shown the key may send
_LENGTH = struct.Struct("<I")


class Line:
    """One end of a line. Any thread may send; one receives."""

    def __init__(self, connection: Connection, key: bytes, *, leads: bool) -> None:
        """Show the key, and see that the other end has it. ``leads``: whether this end is the leader's.

        Raises:
            HostLostError: the other end does not have it, or says nothing.
        """
        self._connection, self._lock = connection, threading.Lock()
        self._sent = self._received = 0
        mine = os.urandom(32)
        try:
            connection.send_bytes(mine)
            theirs = self._bytes(SILENCE, _FIRST)
            both = mine + theirs if leads else theirs + mine
            self._out, self._in = (_derived(key, both, name) for name in (_NAMES if leads else reversed(_NAMES)))
            connection.send_bytes(_derived(self._out, b"", "hello"))
            shown = self._bytes(SILENCE, _FIRST)
        except (OSError, EOFError) as error:
            raise _lost(error) from error
        if not hmac.compare_digest(shown, _derived(self._in, b"", "hello")):
            raise HostLostError("The other end of a group's line has another key: give all hosts the same file.")

    def send(self, told: Mapping[str, Any], data: Sequence[bytes | memoryview] = ()) -> None:
        """Send something that JSON can say, and bytes.

        Raises:
            HostLostError: the line is broken.
        """
        head = json.dumps(told, separators=(",", ":")).encode()
        body = b"".join((_LENGTH.pack(len(head)), head, *data))
        try:
            with self._lock:
                self._connection.send_bytes(_seal(self._out, self._sent, body) + body)
                self._sent += 1
        except (OSError, EOFError) as error:
            raise _lost(error) from error

    def receive(self) -> tuple[dict[str, Any], memoryview]:
        """Wait for what comes next: what was said, and bytes.

        Raises:
            HostLostError: the line is broken or silent, or what came is not of the other end's making.
        """
        try:
            frame = self._bytes(SILENCE, _LARGEST)
        except (OSError, EOFError) as error:
            raise _lost(error) from error
        seal, body = frame[:32], memoryview(frame)[32:]
        if not hmac.compare_digest(seal, _seal(self._in, self._received, body)):
            raise HostLostError("What came down a group's line was not sent by its other end.")
        self._received += 1
        (length,) = _LENGTH.unpack(body[: _LENGTH.size])
        told: dict[str, Any] = json.loads(bytes(body[_LENGTH.size : _LENGTH.size + length]))
        return told, body[_LENGTH.size + length :]

    def beat(self) -> None:
        """Give signs of life from now on, in a thread of their own, until the line breaks."""

        def give() -> None:
            pause = threading.Event()
            try:
                while not pause.wait(BEAT):
                    self.send({"do": "beat"})
            except HostLostError:
                return  # whoever receives hears of it

        threading.Thread(target=give, name="gemma-jax-beat", daemon=True).start()

    def close(self) -> None:
        """Break it."""
        self._connection.close()

    def _bytes(self, patience: float, most: int) -> bytes:
        if not self._connection.poll(patience):
            raise TimeoutError(f"nothing came for {patience:g} s")
        return self._connection.recv_bytes(most)


_NAMES = ("leader", "follower")


def _derived(key: bytes, text: bytes, name: str) -> bytes:
    return hmac.digest(key, text + name.encode(), hashlib.sha256)


def _seal(key: bytes, number: int, body: bytes | memoryview) -> bytes:
    return hmac.digest(key, b"".join((struct.pack("<Q", number), body)), hashlib.sha256)


def _lost(error: Exception) -> HostLostError:
    why = str(error) or type(error).__name__
    return HostLostError(f"The line between two hosts of a group broke: {why}.")
