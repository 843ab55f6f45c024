"""A terminal for tests: a pseudo-terminal of a given size, with a thread that reads what is drawn there; or a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
import threading
import time
from typing import Self

SIZES = [(80, 24), (200, 50), None]  # None: piped
MARK = b"\x00that is all\x00"
STEERING = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


class Terminal:
    """The standard streams while a ``with`` block lasts."""

    def __init__(self, size: tuple[int, int] | None, encoding: str = "utf-8") -> None:
        self.size, self._encoding = size, encoding
        self._seen, self._lock = bytearray(), threading.Lock()

    def __enter__(self) -> Self:
        self._before = sys.stdin, sys.stdout, sys.stderr
        if self.size is None:
            self._typing, stdin = os.pipe()[::-1]
            self._shown, stdout = os.pipe()
        else:
            self._shown, stdout = pty.openpty()
            columns, lines = self.size
            fcntl.ioctl(stdout, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            self._typing, stdin = self._shown, os.dup(stdout)
        sys.stdin = os.fdopen(stdin, encoding=self._encoding)
        sys.stdout = os.fdopen(stdout, "w", encoding=self._encoding)
        sys.stderr = os.fdopen(os.dup(stdout), "w", encoding=self._encoding)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        streams = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = self._before
        for stream in streams:
            stream.close()
        self._reader.join()
        for fd in {self._shown, self._typing}:
            os.close(fd)

    def type(self, text: str) -> None:
        """Type something. On a pipe, that is all of the input."""
        os.write(self._typing, text.encode())
        if self.size is None:
            os.close(self._typing)
            self._typing = os.open(os.devnull, os.O_RDONLY)

    @property
    def raw(self) -> str:
        sys.stderr.flush()
        sys.stdout.flush()
        os.write(sys.stdout.fileno(), MARK)  # behind all that was said: the reader may be late
        while True:
            with self._lock:
                if MARK in self._seen:
                    self._seen = self._seen.replace(MARK, b"")
                    return self._seen.decode(self._encoding)
            time.sleep(0.001)

    def take(self) -> str:
        """Return what was shown since the last time, without what steers the terminal."""
        found = STEERING.sub("", self.raw).replace("\r\n", "\n")
        with self._lock:
            self._seen.clear()
        return found

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._shown, 65536)
            except OSError:  # the other end of a terminal was closed
                return
            if not part:
                return
            with self._lock:
                self._seen += part
