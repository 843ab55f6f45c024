"""Locks on files: they say who is writing a file or compiling a program, across threads and processes.

The system drops a lock when its holder dies, however it dies, so a dead holder blocks nothing. A lock belongs to one
open file description, so threads of one process exclude each other as processes do.
"""

from __future__ import annotations

import fcntl
import os
import time

from langchain_gemma_jax.private.folder import Folder

_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.05


class Hold:
    """An open file that is locked by this holder alone."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _holds.add(self)

    def release(self) -> None:
        """Drop the lock. A second call does nothing, and neither does a call in a child that was forked since."""
        _holds.discard(self)
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


_holds: set[Hold] = set()


def _close_in_child() -> None:
    """Close a forked child's copies of the locked files: they would keep the locks alive after the parent's death."""
    while _holds:
        hold = _holds.pop()
        fd, hold.fd = hold.fd, -1
        os.close(fd)


os.register_at_fork(after_in_child=_close_in_child)


def try_hold(folder: Folder, name: str, flags: int) -> Hold | None:
    """Open a file and lock it. Return None if another holder has it, or deleted it while it was being opened.

    Raises:
        OSError: it cannot be opened, or this file system has no locks.
    """
    fd = folder.open(name, flags)
    try:
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o600)  # whatever the umask took
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), folder.stat(name)):  # the holder before may have deleted it
            return Hold(fd)
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def take(folder: Folder, name: str, patience: float) -> Hold | None:
    """Take the lock of this name, waiting up to ``patience`` seconds. Return None if another holder still has it."""
    deadline = time.monotonic() + patience
    wait = _FIRST_WAIT
    while True:
        if hold := try_hold(folder, name, os.O_RDWR | os.O_CREAT):
            return hold
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        time.sleep(min(wait, left))
        wait = min(wait * 1.5, _LONGEST_WAIT)


def give_back(folder: Folder, name: str, hold: Hold) -> None:
    """Delete a lock's file and drop the lock. The file is deleted while held, so a later holder's is never deleted."""
    try:
        if hold.fd >= 0:
            folder.remove(name)
    finally:
        hold.release()
