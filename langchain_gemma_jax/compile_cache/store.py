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

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from langchain_gemma_jax.compile_cache.entry import HEAD, Entry, digest_of, file_of, peek, seal, unseal
from langchain_gemma_jax.compile_cache.sweep import ENTRY, Listed, prove, read_manifest, sweep
from langchain_gemma_jax.compile_cache.warning import CompileCacheWarning, warn_once
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.file_locks import give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder
from langchain_gemma_jax.private.kept_files import CLAIM, KeptFiles, Wording
from langchain_gemma_jax.private.writing import write_whole


class Stored(NamedTuple):
    """An entry in a listing. Its header was read, and not proven."""

    name: str
    label: str
    bytes: int
    seconds: float
    """Seconds that its compile took: each use saves them."""
    last_used: float
    """Seconds since 1970."""


def entries(folder: Folder) -> list[Stored]:
    """Return the entries of a folder, the most recently used first."""
    found = []
    for file in _files(folder):
        try:
            facts = folder.stat(file)
            name, label, seconds = peek(folder.read_head(file, HEAD))
        except (OSError, DamagedError):  # deleted just now, or damaged
            continue
        found.append(Stored(name, label, facts.st_size, seconds, facts.st_atime_ns / 1e9))
    return sorted(found, key=lambda stored: -stored.last_used)


def verify(folder: Folder, largest: int) -> list[str]:
    """Return the file names of all entries that are damaged, or have changed since they were listed."""
    listed = read_manifest(folder)
    damaged = []
    for file in _files(folder):
        try:
            facts = folder.stat(file)
            digest = prove(folder, file, largest)
            known = listed.get(file, ("", 0, 0, 0))
            if known[1:] == (facts.st_size, facts.st_mtime_ns, facts.st_ino) and known[0] != digest:
                damaged.append(file)
        except FileNotFoundError:
            continue
        except (OSError, DamagedError):
            damaged.append(file)
    return damaged


def _files(folder: Folder) -> list[str]:
    try:
        return [file for file in folder.names() if file.endswith(ENTRY)]
    except OSError:  # vanished
        return []


__all__ = ["DEFAULT_CAP", "CompileCacheWarning", "Counts", "Entry", "Store", "Stored"]

DEFAULT_CAP: Final = 4 * 2**30

_WORDING: Final = Wording(
    files="compiled programs",
    unread="A compiled program in {folder} cannot be read, and is compiled again",
    danger="Others could have their code run by you.",
    choose="set GEMMA_JAX_COMPILE_CACHE to a folder of your own, or to off",
    choose_unseen="set GEMMA_JAX_COMPILE_CACHE to a folder that does not exist yet",
    remedy="GEMMA_JAX_COMPILE_CACHE can name another folder, or be off.",
    warn=warn_once,
    warn_visible=lambda message: warn_once(message, "others may look in"),
)


@dataclass(frozen=True)
class Counts:
    """Numbers of what a store did in this process."""

    hits: int = 0
    misses: int = 0
    rejected: int = 0
    """Entries that were damaged or not ours. Each was deleted."""
    written: int = 0
    evicted: int = 0
    """Entries that were deleted to keep the cap."""
    seconds_saved: float = 0.0
    """Seconds that the compiles of all hits took when they were done."""


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
        self._files = KeptFiles(folder, _WORDING, Counts(), root=root, prepare=self._first_sweep)
        self._swept: list[str] = []  # the damaged entries that sweeps found

    @property
    def counts(self) -> Counts:
        return self._files.counts

    def get(self, name: str) -> Entry | None:
        """Return what was put under this name, with every bit as it was. A damaged entry is deleted: None."""
        file = file_of(name)
        entry = self._files.read(file, lambda folder: unseal(folder.read(file, self.cap), name))
        if entry:
            self._files.mark_used(file)
            self._files.count(hits=1, seconds_saved=entry.seconds)
        else:
            self._files.count(misses=1)
        return entry

    def has(self, name: str) -> bool:
        """Return True if something is kept under a name. It was not read, and may be damaged."""
        facts = self._files.facts(file_of(name))
        return facts is not None and facts.st_size > 0

    def put(self, name: str, payload: bytes, *, label: str, seconds: float) -> bool:
        """Keep a program, in place of what was kept under the name. True if it was written.

        Args:
            name: what ``get`` finds it by.
            payload: the program.
            label: what it is, for people.
            seconds: what its compile took.
        """
        folder = self._files.to_write()
        if folder is None:
            return False
        head = seal(name, payload, label=label, seconds=seconds)
        size = len(head) + len(payload)
        if size > self.cap:
            return False
        file = file_of(name)
        with self._files.writing():
            facts = write_whole(folder, file, head, payload)
            self._files.count(written=1)
            self._sweep(folder, {file: (digest_of(head), size, facts.st_mtime_ns, facts.st_ino)})
            return True
        return False

    @contextmanager
    def claim(self, name: str, patience: float) -> Iterator[bool]:
        """Claim a program for a ``with`` block that compiles it, so that no other thread or process does meanwhile.

        While another one holds it, entering waits, at most ``patience`` seconds, then goes on all the same: the other
        one may be stopped, or slow. Look for the entry again after entering. Gives whether the wait was enough.
        """
        file = file_of(name).removesuffix(ENTRY) + CLAIM
        folder = self._files.to_write()  # a process that cannot write compiles for itself
        hold, alone = None, True
        if folder:
            with self._files.writing():
                hold = take(folder, file, patience)
                alone = hold is not None
        try:
            yield alone
        finally:
            if folder and hold:
                with self._files.writing():
                    give_back(folder, file, hold)

    def discard(self, name: str) -> None:
        """Delete an entry that is as it was written, and yet cannot be used."""
        self._files.reject(file_of(name))

    def entries(self) -> list[Stored]:
        """Entries that are kept, the most recently used first."""
        folder = self._files.folder()
        return entries(folder) if folder else []

    def verify(self) -> list[str]:
        """Read everything. Entries that are damaged are deleted; these are their file names.

        Those that the sweep deleted when this store was first used are among them.
        """
        folder = self._files.folder()
        if folder is None:
            return []
        damaged = verify(folder, self.cap)
        for file in damaged:
            self._files.reject(file)
        return [*self._swept, *damaged]

    def clear(self) -> int:
        """Delete everything but what other processes are writing. Return the number of entries."""
        return self._files.clear(ENTRY)

    def _first_sweep(self, folder: Folder) -> None:
        # Where nothing can be written, as in an image, that is meant: what is there is used, without a warning.
        self._files.writes = folder.writable
        if folder.writable:
            self._sweep(folder, {})

    def _sweep(self, folder: Folder, written: dict[str, Listed]) -> None:
        with self._files.writing():
            swept = sweep(folder, self.cap, written)
            self._files.count(rejected=len(swept.rejected), evicted=swept.evicted)
            self._swept += swept.rejected
