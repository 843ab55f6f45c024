"""Atomic writes: a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from langchain_gemma_jax.private.file_locks import Hold, try_hold
from langchain_gemma_jax.private.folder import Folder

TEMPORARY = ".tmp"
_ATTEMPTS = 20


def write_whole(folder: Folder, name: str, *parts: bytes | memoryview) -> os.stat_result:
    """Write a file under a temporary name, then rename it into place.

    There is no fsync: readers detect an entry that a power cut tore by its digest.

    Raises:
        OSError: it was not written. What was there before still is.
    """
    hold = write_and_hold(folder, name, *parts)
    try:
        return os.fstat(hold.fd)
    finally:
        hold.release()


def write_unlocked(folder: Folder, name: str, *parts: bytes | memoryview) -> None:
    """Write a file as ``write_whole`` does, without locks, which not every network has.

    Its bytes are with the server before it gets its name: where a network writes later, errors come then.

    Raises:
        OSError: it was not written. What was there before still is.
    """
    temporary = f".{os.urandom(8).hex()}{TEMPORARY}"
    fd = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[os.write(fd, rest) :]
            os.fchmod(fd, 0o644)  # what is in it is encrypted, and other machines' users may be others
            os.fsync(fd)
        finally:
            os.close(fd)
        folder.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.remove(temporary)
        raise


def write_and_hold(folder: Folder, name: str, *parts: bytes | memoryview) -> Hold:
    """Write a file as ``write_whole`` does, and keep its lock, by which others see that its writer is still alive.

    Raises:
        OSError: it was not written. What was there before still is.
    """
    temporary, hold = _begin(folder)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(hold.fd, rest) :]
        folder.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.remove(temporary)
        hold.release()
        raise
    return hold


def _begin(folder: Folder) -> tuple[str, Hold]:
    """Make a new locked file.

    A sweep that runs between making and locking it takes it for a dead writer's and deletes it, so this is retried.
    """
    for _ in range(_ATTEMPTS):
        temporary = f".{os.urandom(8).hex()}{TEMPORARY}"
        hold = None
        try:
            hold = try_hold(folder, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        finally:
            if hold is None:
                with suppress(OSError):
                    folder.remove(temporary)
        if hold:
            return temporary, hold
    raise OSError(errno.EAGAIN, "each new file was deleted at once by another process")
