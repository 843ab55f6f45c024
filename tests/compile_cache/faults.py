"""A disk that fails when it is told to, and what watches the reads."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CALLS = ("open", "write", "replace", "utime", "mkdir", "chmod", "fchmod", "unlink")


class Faults:
    """Has calls that write raise.

    with faults.failing(errno.ENOSPC, first=3, last=3):
        ...                                        # the third such call raises
    assert faults.calls > 3
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0  # that write, so far
        self.failed: list[str] = []  # their names
        self._error: int | None = None
        self._first = self._last = 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))
        monkeypatch.setattr(fcntl, "flock", self._wrap("flock", fcntl.flock))

    def _wrap(self, name, function):
        def call(*args, **options):
            writes = name != "open" or (len(args) > 1 and args[1] & WRITING)
            if self._error is not None and writes:
                self.calls += 1
                if self._first <= self.calls <= self._last:
                    self.failed.append(name)
                    raise OSError(self._error, os.strerror(self._error))
            return function(*args, **options)

        return call

    @contextmanager
    def failing(self, error: int, first: int = 1, last: int = sys.maxsize) -> Iterator[None]:
        self.calls, self.failed = 0, []
        self._error, self._first, self._last = error, first, last
        try:
            yield
        finally:
            self._error = None


FULL, BROKEN, READ_ONLY, FORBIDDEN, QUOTA = errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT


class Watch:
    """Which files and folders this process opened or listed, by an audit hook: it sees every way to do so."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._on = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if self._on and event in {"open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.utime"}:
            self.seen.append(f"{event} {args[0]}")

    @contextmanager
    def on(self) -> Iterator[list[str]]:
        self.seen.clear()
        self._on = True
        try:
            yield self.seen
        finally:
            self._on = False


watch = Watch()
