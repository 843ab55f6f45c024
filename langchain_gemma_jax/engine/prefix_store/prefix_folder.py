"""The folder of prefix files, which all processes of a user share: written whole, within a budget, read with care.

Nothing here raises because of what is on the disk, or is not: a store that cannot be used is an empty one, and
``PrefixStoreWarning`` says so once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
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
from langchain_gemma_jax.private.writing import write_whole

PATIENCE: Final = 5.0  # seconds that a writer waits for its turn
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


class PrefixFolder:
    """Prefix files in a folder of their own. Making one touches nothing; any thread may use it."""

    def __init__(self, folder: Path, cap: int) -> None:
        """``cap`` bounds the bytes of all files together. The least recently used ones are deleted first."""
        self.path, self.cap = folder, cap
        self.files = KeptFiles(folder, _WORDING, PrefixCounts(), rejected="prefixes_rejected")

    @property
    def counts(self) -> PrefixCounts:
        return self.files.counts

    @property
    def writes(self) -> bool:
        """Return True if a file would be written."""
        return self.files.to_write() is not None

    # Look.

    def changed_at(self) -> int:
        """Return a number that is another one when files came or went; 0 if there is no folder."""
        folder = self.files.folder()
        try:
            return 0 if folder is None else os.fstat(folder.fd).st_mtime_ns
        except OSError:
            return 0

    def names(self) -> list[str]:
        """Return the names of all prefix files."""
        folder = self.files.folder()
        try:
            return [] if folder is None else [name for name in folder.names() if name.endswith(PREFIX)]
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
        return model_digest(files, self.files.folder(), thoroughly=thoroughly)

    # Read.

    def header(self, name: str) -> PrefixHeader | None:
        """Return the header of a file, proven. None: there is no such file; a damaged one is deleted."""
        return self.files.read(name, lambda folder: _header(folder, name))

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

    # Write.

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Keep a file, whole or not at all, and the budget. Return True if it was written."""
        size = sum(len(part) for part in parts)
        folder = self.files.to_write()
        if folder is None or size > self.cap:
            return False
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

    def clear(self) -> int:
        """Delete everything but what other processes are writing. Return the number of prefixes."""
        return self.files.clear(PREFIX)


def _header(folder: Folder, name: str) -> PrefixHeader:
    data = folder.read_head(name, HEAD)
    if (size := header_bytes(data)) > len(data):
        data = folder.read_head(name, min(size, LARGEST_HEADER))
    return read_header(data)


def _blocks(
    folder: Folder, name: str, wanted: Sequence[int], header: PrefixHeader, sealing: Sealing
) -> list[memoryview]:
    fd, size = folder.open_to_read(name)
    try:
        if read_header(_exactly(fd, 0, header.size)).digest != header.digest:
            raise FileNotFoundError  # it was replaced: whoever looks again finds the new one
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


def _make_room(folder: Folder, most: int, replaced: str) -> int:
    """Delete what dead writers left, and the least recently used files beyond ``most`` bytes. Return their number.

    The file that is about to be replaced does not count.
    """
    for name in folder.names():
        if not name.endswith(PREFIX) and name not in {_WRITING, DIGESTS}:
            remove_unheld(folder, name)
    others = {name: facts for name, facts in _facts(folder).items() if name != replaced}
    return len(evict(folder, others, sum(facts.st_size for facts in others.values()) - most))
