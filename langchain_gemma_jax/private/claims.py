"""Locks on files: who is writing a file or compiling a program, across threads and processes.

The system drops a lock when its holder dies, however it dies, so nobody waits for the dead. A lock belongs to one
opening of a file, so threads of a process exclude each other as processes do.
"""

from __future__ import annotations

import fcntl
import os
import time

from langchain_gemma_jax.private.folder import Folder

_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.05


class Hold:
    """An open file of which this is the only holder."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _holds.add(self)

    def release(self) -> None:
        """Let the next one have it. Once is enough; in a child that was forked meanwhile it does nothing."""
        _holds.discard(self)
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


_holds: set[Hold] = set()


def _let_go_in_child() -> None:
    """A forked child has copies of the open files, and would keep their locks alive after the parent's death."""
    while _holds:
        hold = _holds.pop()
        fd, hold.fd = hold.fd, -1
        os.close(fd)


os.register_at_fork(after_in_child=_let_go_in_child)


def try_hold(folder: Folder, name: str, flags: int) -> Hold | None:
    """Open a file and lock it. None: another one holds it, or deleted it while it was opened.

    Raises:
        OSError: it cannot be opened, or this file system has no locks.
    """
    fd = folder.open(name, flags)
    try:
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o600)  # whatever the umask took
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), folder.stat(name)):  # who held it before may have deleted it
            return Hold(fd)
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def take(folder: Folder, name: str, patience: float) -> Hold | None:
    """Be the one who does what the name stands for. None: another one still did after ``patience`` seconds."""
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
    """Delete the file while it is still held, so that none is left behind and none of a later holder is deleted."""
    try:
        if hold.fd >= 0:
            folder.remove(name)
    finally:
        hold.release()
