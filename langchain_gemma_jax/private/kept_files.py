"""Files that one process of a user keeps for later ones, in a trusted folder: within a budget, proven when read.

Nothing here raises because of what is on the disk, or is not: a folder that cannot be used is an empty one, a damaged
file is deleted, and after a write that failed this process only reads. A warning says so.
"""

from __future__ import annotations

import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from langchain_gemma_jax.private.file_locks import give_back, try_hold
from langchain_gemma_jax.private.folder import (
    DamagedError,
    Folder,
    UnsafeFolderError,
    blemish,
    open_folder,
    open_shared,
)
from langchain_gemma_jax.private.writing import TEMPORARY


class ADataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Counts = TypeVar("Counts", bound=ADataclass)
Content = TypeVar("Content")

CLAIM: Final = ".claim"  # ends the name of a file that is locked while its holder is at work
_DAY: Final = 86_400 * 10**9


@dataclass(frozen=True)
class Wording:
    """Warnings about a folder: their words, and the functions that give them."""

    files: str
    """Plural of what a file holds, as in "compiled programs"."""
    unread: str
    """A file that cannot be read, and what is done instead; ``{folder}`` is its folder."""
    danger: str
    """A sentence: the harm that a user could do who can write to the folder."""
    choose: str
    """Another folder, as advice: "set X to a folder of your own"."""
    choose_unseen: str
    """A folder that others cannot look into, in the same form."""
    remedy: str
    """A sentence: what to set if the folder does not work."""
    warn: Callable[[str], None]
    warn_visible: Callable[[str], None]


class KeptFiles(Generic[Counts]):
    """A folder of files. Making one touches nothing: the folder is checked, and made, when it is first used.

    Threads may share one, and a forked child may go on with its parent's.
    """

    def __init__(
        self,
        path: Path,
        wording: Wording,
        counts: Counts,
        *,
        rejected: str = "rejected",
        root: Path | None = None,
        prepare: Callable[[Folder], None] | None = None,
        shared: bool = False,
    ) -> None:
        """``rejected`` is the field of ``counts`` for damaged files; ``prepare`` is called with the opened folder.

        The topmost folder of the path that has to be private is ``root``, by default the folder itself. ``shared``:
        many machines mount it, and its files may be others'. So it need not be private, and what cannot be deleted is
        left.
        """
        self.shared = shared
        self.refused: frozenset[str] = frozenset()  # names of damaged files that could not be deleted
        self.path, self.root = path, path if root is None else root
        self.counts = counts
        self.writes = True  # until a write fails
        self._wording, self._rejected, self._prepare = wording, rejected, prepare
        self.reopen()
        _all.add(self)

    def reopen(self) -> None:
        """Check the folder again at the next use, under new locks: in a forked child the old ones may stay locked."""
        self._opening, self._counting = threading.Lock(), threading.Lock()
        self._opened = False
        self._folder: Folder | None = None

    def count(self, **more: float) -> None:
        """Add to the counts."""
        with self._counting:
            added: dict[str, Any] = {name: getattr(self.counts, name) + by for name, by in more.items()}
            self.counts = replace(self.counts, **added)

    def folder(self) -> Folder | None:
        """Return the folder, or None if it cannot be used."""
        if not self._opened:
            with self._opening:
                if not self._opened:
                    self._folder = self._open()
                    self._opened = True
        return self._folder

    def to_write(self) -> Folder | None:
        """Return the folder, or None if it cannot be used or a write failed."""
        folder = self.folder()
        return folder if self.writes else None

    def writing(self) -> _Writing:
        """Return a context that swallows an OSError, warns of it, and has no more files written."""
        return _Writing(self)

    def stop_writing(self, error: OSError) -> None:
        self.writes = False
        words = self._wording
        words.warn(
            f"No more {words.files} are kept in {self.path}: {error}. Those that are there are still used. "
            + words.remedy
        )

    def facts(self, name: str) -> os.stat_result | None:
        """Return the status of a file, which may be damaged. None: there is no such file."""
        folder = self.folder()
        try:
            return None if folder is None else folder.stat(name)
        except OSError:
            return None

    def read(self, name: str, content: Callable[[Folder], Content]) -> Content | None:
        """Return what ``content`` reads of a file. None: it cannot be read; a damaged one is deleted."""
        folder = self.folder()
        if folder is None:
            return None
        try:
            return content(folder)
        except FileNotFoundError:
            pass
        except DamagedError:
            self.reject(name)
        except (OSError, MemoryError) as error:
            self._wording.warn(f"{self._wording.unread.format(folder=self.path)}: {error}.")
        return None

    def mark_used(self, name: str) -> None:
        """Count now as a file's last use, so that it is not the next to be evicted."""
        if folder := self.to_write():
            if self.shared:
                with suppress(OSError):  # it is another's, or the folder can be read only
                    folder.mark_used(name)
                return
            with self.writing(), suppress(FileNotFoundError):  # another process may have deleted it by now
                folder.mark_used(name)

    def remove(self, name: str) -> None:
        if folder := self.to_write():
            if self.shared:
                with suppress(OSError):
                    folder.remove(name)
                return
            with self.writing():
                folder.remove(name)

    def reject(self, name: str) -> None:
        """Delete a file that is not what it should be, and count it."""
        if self.folder():
            self.count(**{self._rejected: 1})
            self.remove(name)
            if self.facts(name) is not None:
                with self._counting:
                    self.refused |= {name}

    def accept(self, name: str) -> None:
        """Forget that a file was refused: another one has its name now."""
        with self._counting:
            self.refused -= {name}

    def clear(self, suffix: str) -> int:
        """Delete everything but what other processes are writing. Return the number of files with the suffix."""
        count = 0
        folder = self.folder()
        with self.writing():
            for name in folder.names() if folder else ():
                facts = remove_unheld(folder, name) if folder else None
                count += facts is not None and name.endswith(suffix)
        return count

    def _open(self) -> Folder | None:
        words = self._wording
        not_kept = f"{words.files[:1].upper()}{words.files[1:]} are not kept"
        try:
            folder = open_shared(self.path) if self.shared else open_folder(self.path, self.root)
        except UnsafeFolderError as error:
            ways = ", or ".join([error.remedy, words.choose] if error.remedy else [words.choose])
            words.warn(
                f"{not_kept}: {error.path} {error.found}. {words.danger} The folder is used when {error.expected}: "
                f"{ways}."
            )
            return None
        except OSError as error:
            words.warn(f"{not_kept}, as {self.path} cannot be used: {error}. {words.remedy}")
            return None
        if folder.visible:
            path = folder.visible[0]
            words.warn_visible(
                f"Others may look into {path}, where {words.files} are kept: they can see how many these are, and can "
                "neither read nor change them. The folder was there already, so it is left as it is. "
                f"chmod go-rwx {path} if it is for this alone, or {words.choose_unseen}."
            )
        if self._prepare:
            self._prepare(folder)
        return folder


class _Writing:
    def __init__(self, files: KeptFiles[Any]) -> None:
        self._files = files

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self._files.stop_writing(error)
        return isinstance(error, OSError)


def remove_unheld(folder: Folder, name: str) -> os.stat_result | None:
    """Delete a file, unless a living writer holds it. Return its status, None for a folder or what is gone already."""
    try:
        facts = folder.stat(name)
        if stat.S_ISDIR(facts.st_mode):
            return None
        if name.endswith((CLAIM, TEMPORARY)) and blemish(facts) is None:
            if hold := try_hold(folder, name, os.O_RDWR):
                give_back(folder, name, hold)
        else:
            folder.remove(name)
    except FileNotFoundError:  # another process deleted it just now
        return None
    return facts


def evict(folder: Folder, files: Mapping[str, os.stat_result], excess: int) -> list[str]:
    """Delete the least recently used of some files until ``excess`` bytes are free. Return their names."""
    # A clock that was wrong must not keep a file for ever: one that will be used tomorrow goes first.
    tomorrow = time.time_ns() + _DAY
    used = {name: facts.st_atime_ns if facts.st_atime_ns < tomorrow else 0 for name, facts in files.items()}
    evicted = []
    for name in sorted(files, key=lambda name: (used[name], name)):
        if excess <= 0:
            break
        folder.remove(name)
        excess -= files[name].st_size
        evicted.append(name)
    return evicted


_all: weakref.WeakSet[KeptFiles[Any]] = weakref.WeakSet()


def _reopen_in_child() -> None:
    for files in list(_all):
        files.reopen()


os.register_at_fork(after_in_child=_reopen_in_child)
