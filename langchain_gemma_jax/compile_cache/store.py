"""The store: compiled programs by name, on disk, across processes.

    store = Store(Path.home() / ".cache" / "langchain-gemma-jax" / "xla" / "jaxlib-0.9.2-5f0c2d9a1b3e" / "cpu")
    with store.claim(name, patience=60):          # one process compiles, the others wait for it
        entry = store.get(name)
        if entry is None:
            store.put(name, compile(), label="step, 1 row, 512 tokens", seconds=1.7)

Nothing here raises because of what is on the disk, or is not: a cache that cannot be used is an empty one, and
``CompileCacheWarning`` says so once.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from langchain_gemma_jax.compile_cache.entry import Entry, digest_of, file_of, seal, unseal
from langchain_gemma_jax.compile_cache.sweep import CLAIM, ENTRY, Listed, sweep
from langchain_gemma_jax.compile_cache.upkeep import Stored, clear, entries, verify
from langchain_gemma_jax.compile_cache.warning import CompileCacheWarning, warn_once
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.file_locks import give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder, UnsafeFolderError, open_folder
from langchain_gemma_jax.private.writing import write_whole

__all__ = ["DEFAULT_CAP", "CompileCacheWarning", "Counts", "Entry", "Store", "Stored"]

DEFAULT_CAP: Final = 4 * 2**30
_REMEDY: Final = "GEMMA_JAX_COMPILE_CACHE can name another folder, or be off."


class Counts(NamedTuple):
    """What a store did in this process."""

    hits: int = 0
    misses: int = 0
    rejected: int = 0
    """Entries that were damaged or not ours. Each was deleted."""
    written: int = 0
    evicted: int = 0
    """Entries that were deleted to keep the cap."""
    seconds_saved: float = 0.0
    """What the compiles of all hits took when they were done."""

    def plus(self, more: Counts) -> Counts:
        return Counts(
            self.hits + more.hits,
            self.misses + more.misses,
            self.rejected + more.rejected,
            self.written + more.written,
            self.evicted + more.evicted,
            self.seconds_saved + more.seconds_saved,
        )


class Store:
    """Entries in a folder of their own.

    Making one touches nothing. The folder is checked, made and swept when it is first used. Threads may share a store,
    and a process that is forked from this one may go on with it.

    Args:
        folder: an absolute path. Every file in it is deleted if it is no entry.
        cap: bytes of all entries together. The least recently used ones are deleted first.
        root: the topmost folder of the path that is this cache's alone. It and what is below are made private. The
            default is the folder itself.

    Raises:
        InputError: the folder is not in ``root``, or not an absolute path.
    """

    def __init__(self, folder: Path, cap: int = DEFAULT_CAP, *, root: Path | None = None) -> None:
        root = folder if root is None else root
        if not folder.is_absolute() or ".." in folder.parts or not folder.is_relative_to(root):
            raise InputError(f"Store: expected an absolute folder in {root}, without '..', found {folder}.")
        self.folder, self.root, self.cap = folder, root, cap
        self._counts = Counts()
        self._writes = True  # until one fails
        self._swept: list[str] = []  # the damaged entries that sweeps found
        self.reopen()
        _stores.add(self)

    def reopen(self) -> None:
        """Check the folder anew at the next use. In a forked child, locks too: nobody would ever give them back."""
        self._opening, self._counting = threading.Lock(), threading.Lock()
        self._opened = False
        self._open: Folder | None = None

    @property
    def counts(self) -> Counts:
        return self._counts

    def get(self, name: str) -> Entry | None:
        """What was put under this name, with every bit as it was. A damaged entry is deleted, and not found."""
        folder = self._use()
        entry = self._read(folder, name) if folder else None
        self._count(Counts(hits=1, seconds_saved=entry.seconds) if entry else Counts(misses=1))
        return entry

    def has(self, name: str) -> bool:
        """Whether something is kept under a name. It was not read, and may be damaged."""
        folder = self._use()
        try:
            return folder is not None and folder.stat(file_of(name)).st_size > 0
        except OSError:
            return False

    def _read(self, folder: Folder, name: str) -> Entry | None:
        file = file_of(name)
        try:
            entry = unseal(folder.read(file, self.cap), name)
        except FileNotFoundError:
            return None
        except DamagedError:
            self._reject(folder, file)
            return None
        except (OSError, MemoryError) as error:
            warn_once(f"A compiled program in {self.folder} cannot be read, and is compiled anew: {error}.")
            return None
        if self._writes:
            try:
                folder.mark_used(file)
            except FileNotFoundError:  # just deleted by another process. The bytes are here
                pass
            except OSError as error:
                self._stop_writing(error)
        return entry

    def put(self, name: str, payload: bytes, *, label: str, seconds: float) -> bool:
        """Keep a program, in place of what was kept under the name. True if it was written.

        Args:
            name: what ``get`` finds it by.
            payload: the program.
            label: what it is, for people.
            seconds: what its compile took.
        """
        folder = self._use()
        if folder is None or not self._writes:
            return False
        head = seal(name, payload, label=label, seconds=seconds)
        size = len(head) + len(payload)
        if size > self.cap:
            return False
        file = file_of(name)
        try:
            facts = write_whole(folder, file, head, payload)
        except OSError as error:
            self._stop_writing(error)
            return False
        self._count(Counts(written=1))
        self._sweep(folder, {file: (digest_of(head), size, facts.st_mtime_ns, facts.st_ino)})
        return True

    @contextmanager
    def claim(self, name: str, patience: float) -> Iterator[bool]:
        """Claim a program for a ``with`` block that compiles it, so that no other thread or process does meanwhile.

        While another one holds it, entering waits, at most ``patience`` seconds, then goes on all the same: the other
        one may be stopped, or slow. Look for the entry again after entering. Gives whether the wait was enough.
        """
        file = file_of(name).removesuffix(ENTRY) + CLAIM
        folder = self._use() if self._writes else None  # who cannot write compiles for himself
        hold, alone = None, True
        if folder:
            try:
                hold = take(folder, file, patience)
                alone = hold is not None
            except OSError as error:
                self._stop_writing(error)
        try:
            yield alone
        finally:
            if folder and hold:
                try:
                    give_back(folder, file, hold)
                except OSError as error:
                    self._stop_writing(error)

    def discard(self, name: str) -> None:
        """Delete an entry that is as it was written, and yet cannot be used."""
        if folder := self._use():
            self._reject(folder, file_of(name))

    def entries(self) -> list[Stored]:
        """What is kept, the most recently used first."""
        folder = self._use()
        return entries(folder) if folder else []

    def verify(self) -> list[str]:
        """Read everything. Entries that are damaged are deleted; these are their file names.

        Those that the sweep deleted when this store was first used are among them.
        """
        folder = self._use()
        if folder is None:
            return []
        damaged = verify(folder, self.cap)
        for file in damaged:
            self._reject(folder, file)
        return [*self._swept, *damaged]

    def clear(self) -> int:
        """Delete everything but what other processes are at. Gives the number of entries."""
        folder = self._use()
        if folder is None:
            return 0
        try:
            return clear(folder)
        except OSError as error:
            self._stop_writing(error)
            return 0

    def _use(self) -> Folder | None:
        if not self._opened:
            with self._opening:
                if not self._opened:
                    self._open = self._open_now()
                    self._opened = True
        return self._open

    def _open_now(self) -> Folder | None:
        try:
            folder = open_folder(self.folder, self.root)
        except UnsafeFolderError as error:
            warn_once(_refusal(error))
            return None
        except OSError as error:
            warn_once(f"Compiled programs are not kept, as {self.folder} cannot be used: {error}. {_REMEDY}")
            return None
        if folder.visible:
            warn_once(_visibility(folder.visible[0]), "others may look in")
        # Where nothing can be written, as in an image, that is meant: what is there is used, and nobody is warned.
        self._writes = folder.writable
        if self._writes:
            self._sweep(folder, {})
        return folder

    def _sweep(self, folder: Folder, written: dict[str, Listed]) -> None:
        try:
            swept = sweep(folder, self.cap, written)
        except OSError as error:
            self._stop_writing(error)
        else:
            self._count(Counts(rejected=len(swept.rejected), evicted=swept.evicted))
            self._swept += swept.rejected

    def _reject(self, folder: Folder, file: str) -> None:
        self._count(Counts(rejected=1))
        if self._writes:
            try:
                folder.remove(file)
            except OSError as error:
                self._stop_writing(error)

    def _stop_writing(self, error: OSError) -> None:
        self._writes = False
        warn_once(
            f"No more compiled programs are kept in {self.folder}: {error}. Those that are there are still used. "
            + _REMEDY
        )

    def _count(self, more: Counts) -> None:
        with self._counting:
            self._counts = self._counts.plus(more)


def _refusal(error: UnsafeFolderError) -> str:
    ways = [error.remedy] if error.remedy else []
    ways.append("set GEMMA_JAX_COMPILE_CACHE to a folder of your own, or to off")
    return (
        f"Compiled programs are not kept: {error.path} {error.found}. Others could have their code run by you. The "
        f"folder of the cache is used when {error.expected}: {', or '.join(ways)}."
    )


def _visibility(path: Path) -> str:
    return (
        f"Others may look into {path}, where compiled programs are kept: they can see how many these are, and can "
        f"neither read nor change them. The folder was there already, so it is left as it is. chmod go-rwx {path} if "
        "it is for this alone, or set GEMMA_JAX_COMPILE_CACHE to a folder that does not exist yet."
    )


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _forget_in_child() -> None:
    for store in list(_stores):
        store.reopen()


os.register_at_fork(after_in_child=_forget_in_child)
