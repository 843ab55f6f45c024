"""Folders that can be trusted: a folder is used only if no other user can write to it, now or later.

It is checked from the top of the tree down. A folder that only this user or root can change, in one that only they
can change, cannot be swapped for another between the check and the use. After that every file is named relative to
the open folder, so that not even a renamed parent leads elsewhere.

A folder that is made here has mode 0700. The mode of a folder that was there already is checked, and never changed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# A reader must not follow a link or hang on a pipe. And reading all the files must not set their times of last use,
# where the system has a flag for that.
_CAREFULLY = os.O_NOFOLLOW | os.O_NONBLOCK
_READ = os.O_RDONLY | getattr(os, "O_NOATIME", 0)


class UnsafeFolderError(Exception):
    """A folder is not used, because other users could put files there. It was left unchanged."""

    def __init__(self, path: Path, found: str, expected: str, *, remedy: str = "") -> None:
        self.path, self.found, self.expected, self.remedy = path, found, expected, remedy
        then = f": {remedy}" if remedy else ""
        super().__init__(f"{path} {found}. It is used when {expected}{then}.")


class DamagedError(Exception):
    """A file differs from what was written. The message says how."""


class Folder:
    """An open folder that was checked. It is closed when nothing refers to it any more."""

    def __init__(self, path: Path, fd: int, visible: tuple[Path, ...] = (), *, shared: bool = False) -> None:
        """``visible``: of this folder and our own folders above it, those that other users may list.

        ``shared``: its files may be others', so a reader has to prove their content with a key.
        """
        self.path = path
        self.fd = fd
        self.visible = visible
        self.shared = shared

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        try:  # noqa: SIM105  at the end of the process a module's names may be gone, `suppress` among them
            close(self.fd)
        except OSError:  # a process that turned into a daemon may have closed every open file
            pass

    def names(self) -> list[str]:
        return os.listdir(self.fd)  # noqa: PTH208  a Path cannot be one that is open

    @property
    def writable(self) -> bool:
        """True if this process may make files in it."""
        return os.access(".", os.W_OK, dir_fd=self.fd, effective_ids=os.access in os.supports_effective_ids)

    def stat(self, name: str) -> os.stat_result:
        """Return the status of the file itself: links are not followed."""
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def open(self, name: str, flags: int) -> int:
        return os.open(name, flags | _CAREFULLY, 0o600, dir_fd=self.fd)

    def read(self, name: str, largest: int) -> bytes:
        """Return a whole file.

        Raises:
            DamagedError: this package cannot have written it, or it has more than ``largest`` bytes.
        """
        return self._read(name, largest, whole=True)

    def read_head(self, name: str, length: int) -> bytes:
        """Return the first ``length`` bytes of a file, with the checks of ``read``."""
        return self._read(name, length, whole=False)

    def _read(self, name: str, limit: int, *, whole: bool) -> bytes:
        fd, size = self.open_to_read(name)
        try:
            if whole and size > limit:  # checked first, so that a huge file is not read into memory
                raise DamagedError(f"it has {size} bytes, where {limit} are possible")
            left = min(size, limit)
            parts = []
            while left > 0 and (part := os.read(fd, left)):
                parts.append(part)
                left -= len(part)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(fd)

    def open_to_read(self, name: str) -> tuple[int, int]:
        """Open a file to read it in parts. Return its descriptor, which the caller closes, and its size in bytes.

        Raises:
            DamagedError: this package cannot have written it.
        """
        if fault := self._blemish(self.stat(name)):
            raise DamagedError(fault)
        try:
            fd = self.open(name, _READ)
        except PermissionError:
            if not self.shared or _READ == os.O_RDONLY:
                raise
            fd = self.open(name, os.O_RDONLY)  # a file's owner alone may leave its times as they are
        facts = os.fstat(fd)
        if fault := self._blemish(facts):
            os.close(fd)
            raise DamagedError(fault)
        return fd, facts.st_size

    def _blemish(self, facts: os.stat_result) -> str | None:
        if self.shared:
            return None if stat.S_ISREG(facts.st_mode) else "it is no regular file"
        return blemish(facts)

    def mark_used(self, name: str) -> None:
        """Set the time of last use to now, and keep the time of last change."""
        changed = self.stat(name).st_mtime_ns
        os.utime(name, ns=(time.time_ns(), changed), dir_fd=self.fd, follow_symlinks=False)

    def replace(self, old: str, new: str) -> None:
        os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def remove(self, name: str) -> None:
        """Delete a file, if it is still there."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)


def blemish(facts: os.stat_result) -> str | None:
    """Return the reason why this package cannot have written a file, or None."""
    if not stat.S_ISREG(facts.st_mode):
        return "it is no regular file"
    if facts.st_uid != os.geteuid():
        return f"it belongs to user {facts.st_uid}"
    if facts.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write to it (mode {stat.S_IMODE(facts.st_mode):04o})"
    return None


def open_folder(path: Path, root: Path) -> Folder:
    """Open a folder. If it is missing, it is made with mode 0700, and so are the missing ones above it.

    Args:
        path: an absolute path, which need not exist.
        root: the topmost folder of the path that has to be ours. From there down, no folder may be writable by other
            users; those that existed before may be listed by them.

    Raises:
        UnsafeFolderError: it, or a folder above it, is not safe. Nothing below was read.
        OSError: it cannot be made or opened.
    """
    path, root = _without_system_link(path), _without_system_link(root)
    for above in reversed(root.parents):
        _check_above(above, _seen(above), holds_root=above == root.parent)
    visible = []
    for own in [root, *(root / part for part in _steps(path.relative_to(root)))]:
        facts = _seen(own)
        _check_own(own, facts)
        if facts.st_mode & _OPEN_TO_OTHERS:  # listing is no danger
            visible.append(own)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    return Folder(path, fd, tuple(visible))


def open_shared(path: Path) -> Folder:
    """Open a folder that many machines mount. Who may write to it is the operator's matter; it is not made here.

    Raises:
        OSError: it is missing, or cannot be opened.
    """
    return Folder(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY), shared=True)


def _steps(path: Path) -> list[Path]:
    return [step for step in reversed([path, *path.parents]) if step.parts]


def _without_system_link(path: Path) -> Path:
    """Return the path with a link of root's in "/" resolved: on macOS, /var and /tmp are such links."""
    _, *parts = path.parts
    if parts:
        first = Path("/", parts[0])
        try:
            facts = first.lstat()
        except OSError:
            return path
        if stat.S_ISLNK(facts.st_mode) and facts.st_uid == 0:
            return first.resolve().joinpath(*parts[1:])
    return path


def _seen(path: Path) -> os.stat_result:
    """Return the status of a path, without following links. If nothing is there, make a folder."""
    try:
        return path.lstat()
    except FileNotFoundError:
        try:
            path.mkdir(0o700)
            path.chmod(0o700)  # the umask may have taken some of it
        except FileExistsError:  # another process was faster. The checks apply to its folder as well
            pass
        return path.lstat()


def _check_above(path: Path, facts: os.stat_result, *, holds_root: bool) -> None:
    _check_folder(path, facts)
    if facts.st_uid not in {0, os.geteuid()}:
        raise UnsafeFolderError(
            path, f"belongs to user {facts.st_uid}, neither to root nor to you", "it belongs to you"
        )
    if not facts.st_mode & _WRITABLE_BY_OTHERS:
        return
    mode = f"can be written to by others (mode {stat.S_IMODE(facts.st_mode):04o})"
    if not facts.st_mode & stat.S_ISVTX:
        raise UnsafeFolderError(path, mode, "it cannot", remedy=f"chmod go-w {path}")
    if holds_root and facts.st_mode & stat.S_IWOTH:
        raise UnsafeFolderError(
            path, f"{mode}, who could make the next folder in it before you do", "only you can make files in it"
        )


def _check_own(path: Path, facts: os.stat_result) -> None:
    _check_folder(path, facts)
    if facts.st_uid != os.geteuid():
        raise UnsafeFolderError(path, f"belongs to user {facts.st_uid}, not to you", "it is yours")
    mode = stat.S_IMODE(facts.st_mode)
    if mode & _WRITABLE_BY_OTHERS:  # chmod is no remedy: what they may have put there would be trusted then
        remedy = f"rm -r {path}, if it holds nothing else"
        raise UnsafeFolderError(path, f"can be written to by others (mode {mode:04o})", "it cannot", remedy=remedy)


def _check_folder(path: Path, facts: os.stat_result) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise UnsafeFolderError(path, "is a symbolic link", "there are no links on the way")
    if not stat.S_ISDIR(facts.st_mode):
        raise UnsafeFolderError(path, "is no folder", "it is one")
