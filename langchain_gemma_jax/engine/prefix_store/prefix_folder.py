"""The folder of prefix files, which all processes of a user share, or all machines: written whole, read with care.

Nothing here raises because of what is on the disk, or is not: a store that cannot be used is an empty one, and
``PrefixStoreWarning`` says so once.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from langchain_gemma_jax.compile_cache.warning import warn_once
from langchain_gemma_jax.engine.prefix_store.model_digest import DIGESTS, model_digest
from langchain_gemma_jax.engine.prefix_store.prefix_file import (
    HEAD,
    LARGEST_HEADER,
    PrefixHeader,
    header_bytes,
    places,
    read_header,
)
from langchain_gemma_jax.engine.prefix_store.prefix_names import PREFIX
from langchain_gemma_jax.engine.prefix_store.sealing import Sealing
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.private.file_locks import give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder
from langchain_gemma_jax.private.kept_files import CLAIM, KeptFiles, Wording, evict, remove_unheld
from langchain_gemma_jax.private.writing import TEMPORARY, write_unlocked, write_whole

PATIENCE: Final = 5.0  # seconds that a writer waits for its turn
LOOK_SECONDS: Final = 5.0  # after which a shared folder is listed again
COLLECT_SECONDS: Final = 60.0  # between two collections of a process
ABANDONED_SECONDS: Final = 3600.0  # after which a file that is still being written is taken for a dead writer's
_WRITING: Final = f"writing{CLAIM}"


class PrefixStoreWarning(UserWarning):
    """Prefixes are not kept on the disk, or not read. Answers are right all the same, and prompts are read again."""


_warn = partial(warn_once, topic="prefixes are not kept", category=PrefixStoreWarning)
_WORDING: Final = Wording(
    files="prefixes",
    unread="A prefix in {folder} cannot be read, and its tokens are read again",
    danger="Others could change what your models have read.",
    choose="name another one with GEMMA_JAX_CACHE_DIR",
    choose_unseen="name one that does not exist yet with GEMMA_JAX_CACHE_DIR",
    remedy="GEMMA_JAX_CACHE_DIR can name another folder, and configure(prefix_store=None) keeps none.",
    warn=_warn,
    warn_visible=partial(warn_once, topic="others may look at prefixes", category=PrefixStoreWarning),
)

_SHARED: Final = replace(
    _WORDING, remedy="prefix_folder names another folder, and configure(prefix_folder=None) shares none."
)
_QUIET: Final = replace(_WORDING, warn=lambda _: None, warn_visible=lambda _: None)


@dataclass(frozen=True)
class PrefixCounts:
    """Numbers of what a process did with the prefixes on the disk."""

    prefixes_written: int = 0
    prefix_bytes_written: int = 0
    prefixes_read: int = 0
    """Beginnings of conversations that came from the disk."""
    prefix_tokens_read: int = 0
    """Tokens that did not have to be read again."""
    prefix_bytes_read: int = 0
    prefixes_rejected: int = 0
    """Files that were damaged or not ours. Each was deleted."""
    prefixes_evicted: int = 0
    """Files that were deleted to keep the budget."""
    prefixes_from_peers: int = 0
    """The number of those read that came from another replica."""
    prefix_bytes_offered: int = 0
    """Bytes that other replicas took from here."""


def _files(path: Path, words: Wording, *, shared: bool = False) -> KeptFiles[PrefixCounts]:
    return KeptFiles(path, words, PrefixCounts(), rejected="prefixes_rejected", shared=shared)


class PrefixFolder:
    """Prefix files in a folder of their own. Making one touches nothing; any thread may use it."""

    def __init__(self, folder: Path, cap: int | None, private: Path | None = None) -> None:
        """Take a folder of this user's, or one that many machines mount.

        Args:
            folder: the folder.
            cap: bounds the bytes of all files together. The least recently used ones are deleted first. None, for a
                shared folder: another process does that.
            private: makes the folder a shared one. What only this machine may be asked about is in this one instead.
        """
        self.path, self.cap, self.shared = folder, cap, private is not None
        self.files = _files(folder, _SHARED if self.shared else _WORDING, shared=self.shared)
        # A user who could change the digests of models could make one model read what another one wrote. Where this
        # machine has no place for them, as with a cache that is mounted read-only, each process computes them.
        self._digests = self.files if private is None else _files(private, _QUIET)
        self._collected_at: float | None = None

    @property
    def counts(self) -> PrefixCounts:
        return self.files.counts

    @property
    def writes(self) -> bool:
        """Return True if a file would be written."""
        return self.files.to_write() is not None

    # Look.

    def changed_at(self) -> int:
        """Return a number that is another one when files came or went; 0 if there is no folder.

        Of a shared folder it is another one every few seconds too: not every network tells when a folder changes.
        """
        folder = self.files.folder()
        try:
            if folder is None:
                return 0
            looked = int(time.monotonic() / LOOK_SECONDS) if self.shared else 0
            return os.fstat(folder.fd).st_mtime_ns + looked
        except OSError:
            return 0

    def names(self) -> list[str]:
        """Return the names of all prefix files."""
        folder = self.files.folder()
        try:
            refused = self.files.refused
            names = [] if folder is None else folder.names()
            return [name for name in names if name.endswith(PREFIX) and name not in refused]
        except OSError as error:
            _warn(f"Prefixes in {self.path} cannot be listed: {error}.")
            return []

    def has(self, name: str) -> bool:
        """Return True if there is a file of this name. It was not read, and may be damaged."""
        facts = self.files.facts(name)
        return facts is not None and stat.S_ISREG(facts.st_mode)

    def nbytes(self) -> int:
        """Return the bytes of all files together."""
        folder = self.files.folder()
        return 0 if folder is None else sum(facts.st_size for facts in _facts(folder).values())

    def digest_of(self, files: Unchanged, *, thoroughly: bool) -> str | None:
        """Return a digest of a model's files, as ``model_digest`` has it."""
        return model_digest(files, self._digests.folder(), thoroughly=thoroughly)

    # Read.

    def header(self, name: str, sealing: Sealing | None) -> PrefixHeader | None:
        """Return the header of a file, proven. None: there is no such file; a damaged one is deleted.

        Without a ``sealing`` it is not proven: that is for people who look.
        """
        return self.files.read(name, lambda folder: _header(folder, name, sealing))

    def blocks(
        self, name: str, wanted: Sequence[int], header: PrefixHeader, sealing: Sealing
    ) -> list[memoryview] | None:
        """Return some blocks of a file, proven. None: it is gone, or another one; a damaged one is deleted.

        Args:
            name: of the file.
            wanted: the numbers of the blocks.
            header: as it was read before. A file that has another one by now is not read.
            sealing: how blocks are proven.
        """
        blocks = self.files.read(name, lambda folder: _blocks(folder, name, wanted, header, sealing))
        if blocks:
            self.files.mark_used(name)
        return blocks

    def raw_header(self, name: str) -> bytes | None:
        """Return the bytes of a file's header, not proven. None: there is no such file."""
        return self.files.read(name, lambda folder: _raw_header(folder, name))

    def raw(self, name: str, at: int, size: int) -> bytes | None:
        """Return some bytes of a file, not proven. None: there is no such file, or it has no such bytes."""
        folder = self.files.folder()
        if folder is None:
            return None
        try:
            fd, there = folder.open_to_read(name)
            try:
                return bytes(_exactly(fd, at, size)) if at + size <= there else None
            finally:
                os.close(fd)
        except (OSError, DamagedError):
            return None

    # Write.

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Keep a file, whole or not at all, and the budget. Return True if it is there."""
        size = sum(len(part) for part in parts)
        folder = self.files.to_write()
        if folder is None or (self.cap is not None and size > self.cap):
            return False
        if self.shared or self.cap is None:
            return self._share(folder, name, parts, size)
        with self.files.writing():
            # One at a time, of all processes: else each would find room for its own alone.
            hold = take(folder, _WRITING, PATIENCE)
            if hold is None:
                return False
            try:
                evicted = _make_room(folder, self.cap - size, name)
                write_whole(folder, name, *parts)
            finally:
                give_back(folder, _WRITING, hold)
            self.files.count(prefixes_written=1, prefix_bytes_written=size, prefixes_evicted=evicted)
            return True
        return False

    def _share(self, folder: Folder, name: str, parts: Sequence[bytes | memoryview], size: int) -> bool:
        """Keep a file where other machines look, unless one of them was faster."""
        with self.files.writing():
            facts = self.files.facts(name)
            if facts is None or facts.st_size != size or name in self.files.refused:
                write_unlocked(folder, name, *parts)
                self.files.accept(name)
                self.files.count(prefixes_written=1, prefix_bytes_written=size)
            if self.cap is not None:
                now = time.monotonic()
                if self._collected_at is None or now - self._collected_at > COLLECT_SECONDS:
                    self._collected_at = now
                    self.files.count(prefixes_evicted=collect(folder, self.cap))
            return True
        return False

    def clear(self) -> int:
        """Delete everything but what other processes are writing. Return the number of prefixes."""
        return self.files.clear(PREFIX)


def _header(folder: Folder, name: str, sealing: Sealing | None) -> PrefixHeader:
    return read_header(_raw_header(folder, name), sealing)


def _raw_header(folder: Folder, name: str) -> bytes:
    data = folder.read_head(name, HEAD)
    if (size := header_bytes(data)) > len(data):
        data = folder.read_head(name, min(size, LARGEST_HEADER))
    return data[:size]


def _blocks(
    folder: Folder, name: str, wanted: Sequence[int], header: PrefixHeader, sealing: Sealing
) -> list[memoryview]:
    fd, size = folder.open_to_read(name)
    try:
        if read_header(_exactly(fd, 0, header.size), sealing).digest != header.digest:
            raise FileNotFoundError  # it was replaced: the next look finds the new one
        where = places(header, sealing)
        end = sum(where[-1]) if where else header.size
        if size != end:
            raise DamagedError(f"it has {size} bytes, and its header says {end}")
        return [
            sealing.unseal(_exactly(fd, *where[index]), index, header.salt, header.digest, header.proofs[index])
            for index in wanted
        ]
    finally:
        os.close(fd)


def _exactly(fd: int, at: int, size: int) -> memoryview:
    found = bytearray(size)
    rest = memoryview(found)
    while rest:
        got = os.preadv(fd, [rest], at)
        if not got:
            raise DamagedError("it was cut off")
        rest, at = rest[got:], at + got
    return memoryview(found)


def _facts(folder: Folder) -> dict[str, os.stat_result]:
    """Return the system's status of each prefix file, by its name."""
    found = {}
    for name in folder.names():
        if name.endswith(PREFIX):
            try:
                found[name] = folder.stat(name)
            except FileNotFoundError:  # another process deleted it just now
                continue
    return found


def collect(folder: Folder, cap: int) -> int:
    """Delete the least recently used files of a shared folder beyond ``cap`` bytes. Return their number.

    What writers left that died is deleted when it is old. Two that collect at once delete the same files.
    """
    now = time.time()
    for name in folder.names():
        if name.endswith(TEMPORARY):
            with suppress(FileNotFoundError):
                if now - folder.stat(name).st_mtime > ABANDONED_SECONDS:
                    folder.remove(name)
    files = _facts(folder)
    return len(evict(folder, files, sum(facts.st_size for facts in files.values()) - cap))


def _make_room(folder: Folder, most: int, replaced: str) -> int:
    """Delete what dead writers left, and the least recently used files beyond ``most`` bytes. Return their number.

    The file that is about to be replaced does not count.
    """
    for name in folder.names():
        if not name.endswith(PREFIX) and name not in {_WRITING, DIGESTS}:
            remove_unheld(folder, name)
    others = {name: facts for name, facts in _facts(folder).items() if name != replaced}
    return len(evict(folder, others, sum(facts.st_size for facts in others.values()) - most))
