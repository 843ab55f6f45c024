"""The folder of prefix files, which all processes of a user share: written whole, within a budget, read with care.

Nothing here raises because of what is on the disk, or is not: a store that cannot be used is an empty one, and
``PrefixStoreWarning`` says so once.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from langchain_gemma_jax.compile_cache.sweep import remove_rest
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
from langchain_gemma_jax.private.folder import DamagedError, Folder, UnsafeFolderError, open_folder
from langchain_gemma_jax.private.writing import write_whole

Found = TypeVar("Found")

PATIENCE: Final = 5.0  # seconds that a writer waits for its turn
_WRITING: Final = "writing.claim"
_DAY: Final = 86_400 * 10**9
_ADVICE: Final = "GEMMA_JAX_CACHE_DIR can name another folder, and configure(prefix_store=None) keeps none."


class PrefixStoreWarning(UserWarning):
    """Prefixes are not kept on the disk, or not read. Answers are right all the same, and prompts are read again."""


@dataclass(frozen=True)
class PrefixCounts:
    """What a process did with the prefixes on the disk."""

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
        self.counts = PrefixCounts()
        self._writes = True  # until writing fails
        self._lock = threading.Lock()
        self._opened = False
        self._folder: Folder | None = None

    def count(self, **more: int) -> None:
        """Add to the counts."""
        with self._lock:
            self.counts = replace(self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()})

    @property
    def writes(self) -> bool:
        """Whether it is worth making something to be written."""
        return self._writes and self._use() is not None

    # Look.

    def changed_at(self) -> int:
        """Return a number that is another one when files came or went; 0 if there is no folder."""
        folder = self._use()
        try:
            return 0 if folder is None else os.fstat(folder.fd).st_mtime_ns
        except OSError:
            return 0

    def names(self) -> list[str]:
        """Return the names of all prefix files."""
        folder = self._use()
        try:
            return [] if folder is None else [name for name in folder.names() if name.endswith(PREFIX)]
        except OSError as error:
            self._say(f"Prefixes in {self.path} cannot be listed: {error}.")
            return []

    def has(self, name: str) -> bool:
        """Whether there is a file of this name. It was not read, and may be damaged."""
        folder = self._use()
        try:
            return folder is not None and stat.S_ISREG(folder.stat(name).st_mode)
        except OSError:
            return False

    def nbytes(self) -> int:
        """Return the bytes of all files together."""
        folder = self._use()
        return 0 if folder is None else sum(facts.st_size for facts in _facts(folder).values())

    def digest_of(self, files: Unchanged, *, thoroughly: bool) -> str | None:
        """Return a digest of a model's files, as ``model_digest`` has it."""
        return model_digest(files, self._use(), thoroughly=thoroughly)

    # Read.

    def header(self, name: str) -> PrefixHeader | None:
        """Return the header of a file, proven. None: there is no such file; a damaged one is deleted."""
        return self._carefully(name, lambda folder: _header(folder, name))

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
        found = self._carefully(name, lambda folder: _blocks(folder, name, wanted, header, sealing))
        folder = self._use()
        if found and folder is not None and self._writes:
            try:
                folder.mark_used(name)
            except FileNotFoundError:  # just deleted by another process. The bytes are here
                pass
            except OSError as error:
                self._stop_writing(error)
        return found

    def reject(self, name: str) -> None:
        """Delete a file that is not what it should be."""
        self.count(prefixes_rejected=1)
        folder = self._use()
        if folder is not None and self._writes:
            try:
                folder.remove(name)
            except OSError as error:
                self._stop_writing(error)

    def forget(self, name: str) -> None:
        """Delete a file that is of no use any more."""
        folder = self._use()
        if folder is not None and self._writes:
            try:
                folder.remove(name)
            except OSError as error:
                self._stop_writing(error)

    # Write.

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> bool:
        """Keep a file, whole or not at all, and the budget. Gives whether it was written."""
        size = sum(len(part) for part in parts)
        folder = self._use()
        if folder is None or not self._writes or size > self.cap:
            return False
        try:
            # One at a time, of all processes: else each would find room for its own alone.
            hold = take(folder, _WRITING, PATIENCE)
            if hold is None:
                return False
            try:
                evicted = _make_room(folder, self.cap - size, name)
                write_whole(folder, name, *parts)
            finally:
                give_back(folder, _WRITING, hold)
        except OSError as error:
            self._stop_writing(error)
            return False
        self.count(prefixes_written=1, prefix_bytes_written=size, prefixes_evicted=evicted)
        return True

    def clear(self) -> int:
        """Delete everything but what other processes are writing. Gives the number of prefixes."""
        folder = self._use()
        count = 0
        try:
            for name in [] if folder is None else folder.names():
                if folder is not None and name != _WRITING:
                    try:
                        remove_rest(folder, name, folder.stat(name))
                    except FileNotFoundError:
                        continue
                    count += name.endswith(PREFIX)
        except OSError as error:
            self._stop_writing(error)
        return count

    # The folder itself.

    def _use(self) -> Folder | None:
        if not self._opened:
            with self._lock:
                if not self._opened:
                    self._folder = self._open()
                    self._opened = True
        return self._folder

    def _open(self) -> Folder | None:
        try:
            folder = open_folder(self.path, self.path)
        except UnsafeFolderError as error:
            ways = [error.remedy] if error.remedy else []
            ways.append("name another one with GEMMA_JAX_CACHE_DIR")
            self._say(
                f"Prefixes are not kept: {error.path} {error.found}. Others could change what your models have read. "
                f"The folder is used when {error.expected}: {', or '.join(ways)}."
            )
            return None
        except OSError as error:
            self._say(f"Prefixes are not kept, as {self.path} cannot be used: {error}. {_ADVICE}")
            return None
        if folder.visible:
            warn_once(
                f"Others may look into {folder.visible[0]}, where prefixes are kept: they can see how many these are, "
                f"and can neither read nor change them. chmod go-rwx {folder.visible[0]} if it is for this alone.",
                "others may look at prefixes",
                PrefixStoreWarning,
            )
        return folder

    def _stop_writing(self, error: OSError) -> None:
        self._writes = False
        self._say(f"No more prefixes are kept in {self.path}: {error}. Those that are there are still read. {_ADVICE}")

    def _say(self, message: str) -> None:
        warn_once(message, "prefixes are not kept", PrefixStoreWarning)

    def _carefully(self, name: str, read: Callable[[Folder], Found]) -> Found | None:
        folder = self._use()
        if folder is None:
            return None
        try:
            return read(folder)
        except FileNotFoundError:
            return None
        except DamagedError:
            self.reject(name)
        except (OSError, MemoryError) as error:
            self._say(f"A prefix in {self.path} cannot be read, and its tokens are read again: {error}.")
        return None


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
    """What the system says of each prefix file."""
    found = {}
    for name in folder.names():
        if name.endswith(PREFIX):
            try:
                found[name] = folder.stat(name)
            except FileNotFoundError:  # another process deleted it just now
                continue
    return found


def _make_room(folder: Folder, most: int, replaced: str) -> int:
    """Delete what dead writers left, and the least recently used files, until so many bytes are there at most.

    Gives how many files that were. What is about to be replaced does not count.
    """
    for name in folder.names():
        if not name.endswith(PREFIX) and name not in {_WRITING, DIGESTS}:
            try:
                remove_rest(folder, name, folder.stat(name))
            except FileNotFoundError:
                continue
    facts = _facts(folder)
    excess = sum(each.st_size for name, each in facts.items() if name != replaced) - most
    # A clock that was wrong must not keep a file for ever: one that will be used tomorrow goes first.
    tomorrow = time.time_ns() + _DAY
    evicted = 0
    used = {name: each.st_atime_ns if each.st_atime_ns < tomorrow else 0 for name, each in facts.items()}
    for name in sorted(facts.keys() - {replaced}, key=lambda name: (used[name], name)):
        if excess <= 0:
            break
        folder.remove(name)
        excess -= facts[name].st_size
        evicted += 1
    return evicted
