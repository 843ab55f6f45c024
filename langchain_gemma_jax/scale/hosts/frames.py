"""Frames over a socket, each with its length before it, sent and received with time limits."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from contextlib import suppress

_LENGTH = struct.Struct("!I")
_PIECE = 2**20  # bytes that are asked of the socket at a time


class FrameSocket:
    """One end of a connection. Several threads may send; one receives."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._sending = connected, threading.Lock()
        connected.setblocking(False)
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(connected, select.POLLIN)
        self._writable.register(connected, select.POLLOUT)

    def send_bytes(self, frame: bytes, patience: float) -> None:
        """Send a frame.

        Raises:
            OSError: the other end is gone. TimeoutError: no byte could be sent for ``patience`` seconds.
        """
        with self._sending:
            left = memoryview(_LENGTH.pack(len(frame)) + frame)
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except BlockingIOError:
                    if not self._writable.poll(patience * 1000):
                        raise TimeoutError(f"nothing was taken for {patience:g} s") from None

    def recv_bytes(self, most: int, patience: float, until: float | None = None) -> bytes:
        """Receive a frame of at most ``most`` bytes.

        Raises:
            EOFError: the other end closed the connection. OSError: the connection broke, or the frame is larger.
            TimeoutError: nothing came for ``patience`` seconds, or the frame was not whole at ``until``, by
                ``time.monotonic()``.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, patience, until))
        if length > most:
            raise OSError(f"a frame of {length} bytes came, where {most} are the most")
        return self._exactly(length, patience, until)

    @property
    def is_broken(self) -> bool:
        """True if the other end is gone. While bytes that it sent are unread, its end cannot be seen: False."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close the connection, and wake a thread that waits for it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __del__(self) -> None:
        """Close a connection that was dropped without ``close``."""
        self._socket.close()

    def _exactly(self, count: int, patience: float, until: float | None) -> bytes:
        found = bytearray()
        while len(found) < count:
            left = patience if until is None else min(patience, until - time.monotonic())
            if left < 0 or not self._readable.poll(left * 1000):
                raise TimeoutError(f"nothing came for {patience:g} s" if until is None else "it took too long")
            with suppress(BlockingIOError):  # poll() can report bytes that then are not there
                piece = self._socket.recv(min(count - len(found), _PIECE))
                if not piece:
                    raise EOFError
                found += piece
        return bytes(found)
