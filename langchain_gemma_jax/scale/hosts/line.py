"""A line between the leader of a group and one follower: frames that only holders of the group's key can make.

Both ends first prove that they have the key. A key that is derived from it and from random bytes of both then seals
every frame together with its number, so that none can be lost, repeated or forged unnoticed. Frames are not encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_gemma_jax.errors import HostLostError
from langchain_gemma_jax.scale.hosts.frames import FrameSocket

BEAT = 1.0  # seconds between two signs of life
SILENCE = 20.0  # seconds without one after which the other end is lost: a busy machine may compile for some ...
FORMING = 60.0  # ... and until the group is together: JAX is imported then, and devices are initialized
_SHOWN_WITHIN = 6.0  # seconds for the other end to show the key
_LARGEST = 2**30  # bytes of a frame: those of a prompt are small
_FIRST = 4096  # bytes of a frame before the key was shown
_LENGTH = struct.Struct("<I")


class OtherKeyError(HostLostError):
    """The other end of a line has another key."""


class Line:
    """One end of a line. Any thread may send; one receives."""

    def __init__(self, frames: FrameSocket, key: bytes, *, leads: bool) -> None:
        """Show that this end has the key, and check that the other end has it. ``leads``: this end is the leader's.

        Raises:
            OtherKeyError: the other end does not have it. HostLostError: the other end sends nothing, or is too slow.
        """
        self._frames, self._lock = frames, threading.Lock()
        self._sent = self._received = 0
        self.patience = FORMING  # seconds of silence after which the other end is lost
        mine, until = os.urandom(32), time.monotonic() + _SHOWN_WITHIN
        try:
            frames.send_bytes(mine, _SHOWN_WITHIN)
            theirs = frames.recv_bytes(_FIRST, _SHOWN_WITHIN, until)
            both = mine + theirs if leads else theirs + mine
            self._out, self._in = (_derived(key, both, name) for name in (_NAMES if leads else reversed(_NAMES)))
            frames.send_bytes(_derived(self._out, b"", "hello"), _SHOWN_WITHIN)
            shown = frames.recv_bytes(_FIRST, _SHOWN_WITHIN, until)
        except (OSError, EOFError) as error:
            raise _lost(error) from error
        if not hmac.compare_digest(shown, _derived(self._in, b"", "hello")):
            raise OtherKeyError("The other end of a group's line has another key: give all hosts the same file.")

    @property
    def is_broken(self) -> bool:
        """True if the other end is gone. While frames that it sent are unread, its end cannot be seen: False."""
        return self._frames.is_broken

    def send(self, message: Mapping[str, Any], data: Sequence[bytes | memoryview] = ()) -> None:
        """Send a value that JSON can hold, and bytes.

        Raises:
            HostLostError: the line is broken.
        """
        head = json.dumps(message, separators=(",", ":")).encode()
        body = b"".join((_LENGTH.pack(len(head)), head, *data))
        try:
            with self._lock:
                self._frames.send_bytes(_seal(self._out, self._sent, body) + body, self.patience)
                self._sent += 1
        except (OSError, EOFError) as error:
            raise _lost(error) from error

    def receive(self, until: float | None = None) -> tuple[dict[str, Any], memoryview]:
        """Wait for the next frame, and return its value and its bytes. ``until``: a deadline, by ``time.monotonic()``.

        Raises:
            HostLostError: the line is broken or silent, or the frame was not sealed by the other end.
        """
        try:
            frame = self._frames.recv_bytes(_LARGEST, self.patience, until)
        except (OSError, EOFError) as error:
            raise _lost(error) from error
        seal, body = frame[:32], memoryview(frame)[32:]
        if not hmac.compare_digest(seal, _seal(self._in, self._received, body)):
            raise HostLostError("What came down a group's line was not sent by its other end.")
        self._received += 1
        (length,) = _LENGTH.unpack(body[: _LENGTH.size])
        message: dict[str, Any] = json.loads(bytes(body[_LENGTH.size : _LENGTH.size + length]))
        return message, body[_LENGTH.size + length :]

    def beat(self) -> None:
        """Start a thread that sends signs of life until the line breaks."""

        def give() -> None:
            pause = threading.Event()
            try:
                while not pause.wait(BEAT):
                    self.send({"do": "beat"})
            except HostLostError:
                return  # the thread that receives gets the error, too

        threading.Thread(target=give, name="gemma-jax-beat", daemon=True).start()

    def close(self) -> None:
        """Close the line, which the other end sees as broken."""
        self._frames.close()


_NAMES = ("leader", "follower")


def _derived(key: bytes, text: bytes, name: str) -> bytes:
    return hmac.digest(key, text + name.encode(), hashlib.sha256)


def _seal(key: bytes, number: int, body: bytes | memoryview) -> bytes:
    return hmac.digest(key, b"".join((struct.pack("<Q", number), body)), hashlib.sha256)


def _lost(error: Exception) -> HostLostError:
    why = str(error) or type(error).__name__
    return HostLostError(f"The line between two hosts of a group broke: {why}.")
