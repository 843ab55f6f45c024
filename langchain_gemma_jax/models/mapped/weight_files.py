"""The folder of weight files: one for each model and way to store it, within a budget of disk.

Nothing here raises because of what is on the disk, or is not: then the weights are read as usual, and the answer says
why. A file gets its name once all of its bytes are on the disk, so a power cut leaves no file with missing pages.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langchain_gemma_jax.models.mapped.array_file import HEADER, ArrayFile, ArrayPlaces
from langchain_gemma_jax.private.file_locks import Hold, give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder
from langchain_gemma_jax.private.kept_files import CLAIM, KeptFiles, Wording, evict, remove_unheld
from langchain_gemma_jax.private.writing import TEMPORARY

LEAST: Final = 32 << 20  # bytes of a model that is worth a file: smaller ones are read in a tenth of a second
MOST: Final = 32 << 30  # bytes of all files together
PATIENCE: Final = 60.0  # seconds to wait for another process that writes the same file
SUFFIX: Final = ".weights"

_MAGIC: Final = b"GJXWEIGHTS2\n\0\0\0\0"
_DAY: Final = 86_400.0  # seconds
_MOUNTS = Path("/proc/self/mountinfo")
# Elsewhere a file may be lost while it is mapped, which ends the process (a network), or it lies in memory (tmpfs).
_LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "overlay", "zfs"})
_LOG = logging.getLogger("langchain_gemma_jax")

_WORDING: Final = Wording(
    files="weights",
    unread="Weights in {folder} cannot be mapped, and are read from the model's own files",
    danger="Others could change what your models compute.",
    choose="name another one with GEMMA_JAX_CACHE_DIR",
    choose_unseen="name one that does not exist yet with GEMMA_JAX_CACHE_DIR",
    remedy="GEMMA_JAX_CACHE_DIR can name another folder, and configure(map_weights=False) maps none.",
    warn=_LOG.warning,
    warn_visible=_LOG.info,
)


@dataclass(frozen=True)
class Origin:
    """Everything that the arrays of a file depend on: 32 bytes of each, which differ when it does."""

    facts: bytes  # the model, its way to be stored, the code that lays it out
    stamps: bytes  # sizes, times and places of the model's own files
    content: Callable[[], bytes]  # the bytes of those files: another copy of them has other stamps. Raises OSError


@dataclass(frozen=True)
class WeightCounts:
    """Numbers of what a process did with weight files."""

    mapped: int = 0
    written: int = 0
    rejected: int = 0  # damaged, or not ours. Each was deleted
    evicted: int = 0


class WeightFiles:
    """Weight files in a folder of their own. Making one touches nothing; any thread may use it."""

    def __init__(self, folder: Path, most: int = MOST, least: int = LEAST) -> None:
        """``most`` bounds the bytes of all files together. The least recently used ones are deleted first.

        Models of fewer bytes than ``least`` have no file.
        """
        self.path, self.most, self.least = folder, most, least
        self._files = KeptFiles(folder, _WORDING, WeightCounts())

    @property
    def counts(self) -> WeightCounts:
        return self._files.counts

    def refuses(self, places: ArrayPlaces) -> str | None:
        """Return why arrays of this size have no file. None: they may have one."""
        if places.size < self.least:
            return f"they are less than {self.least >> 20} MiB"
        if places.size > self.most:
            return f"they are more than the {self.most >> 20} MiB that may be kept"
        return None

    def open(self, name: str, origin: Origin, places: ArrayPlaces) -> ArrayFile | Draft | str:
        """Map the file of this name, or begin it.

        Args:
            name: of the model and the way to store it.
            origin: everything that the arrays depend on.
            places: of the arrays.

        Returns:
            The mapped arrays; or a draft, whose arrays have to be filled; or the reason why there is neither.
        """
        folder = self._files.folder()
        if folder is None:
            return f"{self.path} cannot be used"
        if (kind := file_system(folder.fd)) not in _LOCAL:
            return f"{self.path} is on {kind or 'an unknown file system'}, from which files are not mapped"
        file = name + SUFFIX
        try:
            if (found := self._find(file, origin, places)) is not None:
                return found
            if self._files.to_write() is None:
                return f"{self.path} cannot be written to"
            claim = take(folder, name + CLAIM, PATIENCE)
            if claim is None:
                return "another process has been writing them for a minute"
            made: ArrayFile | Draft | str | None = None
            try:
                made = self._find(file, origin, places) or self._begin(folder, name, claim, origin, places)
                return made
            finally:
                if not isinstance(made, Draft):  # which holds the claim until the file has its name
                    give_back(folder, name + CLAIM, claim)
        except OSError as error:
            return f"{self.path}: {error.strerror or error}"

    def names(self) -> list[str]:
        """Return the names of the files that are there."""
        folder = self._files.folder()
        return sorted(name for name in (folder.names() if folder else ()) if name.endswith(SUFFIX))

    def listed(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the label and the status of each file."""
        folder = self._files.folder()
        for name in self.names():
            if folder is None:
                return
            with suppress(OSError, DamagedError, ValueError):
                head = _Head.read(folder.read_head(name, HEADER))
                yield head.label, folder.stat(name)

    def clear(self) -> int:
        """Delete all files. Processes that have mapped one keep it until they end. Return the number."""
        return self._files.clear(SUFFIX)

    def _find(self, file: str, origin: Origin, places: ArrayPlaces) -> ArrayFile | None:
        """Return the mapped file, if it holds what it should."""

        def opened(folder: Folder) -> ArrayFile | None:
            fd, size = folder.open_to_read(file)
            try:
                head = _Head.read(os.pread(fd, HEADER, 0))
                if size != head.size or os.fstat(fd).st_mtime_ns != head.changed:
                    raise DamagedError("it was changed after it had been written")
                if not head.fits(origin) or size != places.size:
                    return None  # of an earlier version of the model: it is written again
                return ArrayFile(fd, places, filled=True)
            finally:
                os.close(fd)

        found = self._files.read(file, opened)
        if found is not None:
            self._mark_used(file)
            self._files.count(mapped=1)
        return found

    def _mark_used(self, file: str) -> None:
        """Set the time of last use, once a day. In a layer of an image that would copy the whole file, so not there."""
        folder, facts = self._files.folder(), self._files.facts(file)
        if folder is None or facts is None or time.time() - facts.st_atime < _DAY:
            return
        if file_system(folder.fd) != "overlay":
            self._files.mark_used(file)

    def _begin(self, folder: Folder, name: str, claim: Hold, origin: Origin, places: ArrayPlaces) -> Draft | str:
        self._sweep(folder, places.size)
        room = shutil.disk_usage(folder.path).free
        if 2 * places.size > room:
            return f"{self.path} has {room >> 20} MiB left, and they would take more than half of it"
        fd = folder.open(".", os.O_RDWR | os.O_TMPFILE)  # without a name: a killed process leaves none
        try:
            os.fchmod(fd, 0o600)
            arrays = ArrayFile(fd, places, filled=False)
        except BaseException:
            os.close(fd)
            raise
        return Draft(self._files, folder, name, claim, fd, origin, arrays)

    def _sweep(self, folder: Folder, more: int) -> None:
        """Delete what dead writers left, and the least recently used files until ``more`` bytes fit."""
        seen: dict[str, os.stat_result] = {}
        for name in folder.names():
            try:
                facts = folder.stat(name)
                if not stat.S_ISREG(facts.st_mode):
                    continue
                if name.endswith(SUFFIX):
                    seen[name] = facts
                else:
                    remove_unheld(folder, name)
            except OSError:
                continue
        excess = sum(facts.st_size for facts in seen.values()) + more - self.most
        self._files.count(evicted=len(evict(folder, seen, excess)))


class Draft:
    """A weight file that is being filled. ``keep`` or ``drop`` ends it."""

    def __init__(
        self,
        files: KeptFiles[WeightCounts],
        folder: Folder,
        name: str,
        claim: Hold,
        fd: int,
        origin: Origin,
        arrays: ArrayFile,
    ) -> None:
        self.arrays = arrays
        self._files, self._folder, self._name = files, folder, name
        self._claim, self._fd, self._origin = claim, fd, origin

    def keep(self, label: str) -> None:
        """Name the file once it is on the disk: a thread waits for that. ``label`` says for people what it is."""
        self.arrays.seal()
        try:
            threading.Thread(target=self._finish, args=[label], name="gemma-jax-weights", daemon=True).start()
        except RuntimeError:  # the system has no more threads, or Python is about to end: the arrays are there
            self.drop()

    def drop(self) -> None:
        """Leave the file without a name, so that the system deletes it with the last array in it."""
        os.close(self._fd)
        with suppress(OSError):
            give_back(self._folder, self._name + CLAIM, self._claim)

    def _finish(self, label: str) -> None:
        fd, temporary = self._fd, f".{os.urandom(8).hex()}{TEMPORARY}"
        try:
            os.fsync(fd)
            changed = int(time.time()) * 10**9  # whole seconds, which archives of images keep
            size, origin = os.fstat(fd).st_size, self._origin
            head = _Head(origin.facts, origin.stamps, origin.content(), size, changed, label)
            os.pwrite(fd, head.packed(), 0)
            os.utime(fd, ns=(changed, changed))
            os.fsync(fd)
            os.link(f"/proc/self/fd/{fd}", temporary, dst_dir_fd=self._folder.fd, follow_symlinks=True)
            self._folder.replace(temporary, self._name + SUFFIX)
            self._files.count(written=1)
        except OSError as error:
            _LOG.warning("Weights are not kept in %s: %s.", self._folder.path, error)
            with suppress(OSError):
                self._folder.remove(temporary)
        finally:
            self.drop()


@dataclass(frozen=True)
class _Head:
    """The header.

    16 bytes of magic | facts (32) | stamps (32) | content (32) | size (8) | time of change (8) | label (256) | SHA-256
    """

    facts: bytes
    stamps: bytes
    content: bytes
    size: int
    changed: int  # nanoseconds since 1970: a file that was written to later has another time
    label: str

    def fits(self, origin: Origin) -> bool:
        """Return True if the arrays are of this origin. The model's files are read if their stamps are others."""
        return self.facts == origin.facts and (self.stamps == origin.stamps or self.content == origin.content())

    def packed(self) -> bytes:
        label = self.label.encode()[:256].ljust(256, b"\0")
        numbers = self.size.to_bytes(8, "big") + self.changed.to_bytes(8, "big")
        head = _MAGIC + self.facts + self.stamps + self.content + numbers + label
        return head + hashlib.sha256(head).digest()

    @classmethod
    def read(cls, data: bytes) -> _Head:
        """Read a header.

        Raises:
            DamagedError: it is none.
        """
        head, digest = data[: _LABEL.stop], data[_LABEL.stop : _LABEL.stop + 32]
        if head[:16] != _MAGIC or hashlib.sha256(head).digest() != digest:
            raise DamagedError("it does not begin as a file of weights does")
        size, changed = (int.from_bytes(head[at : at + 8], "big") for at in (112, 120))
        label = head[_LABEL].rstrip(b"\0").decode(errors="replace")
        return cls(head[16:48], head[48:80], head[80:112], size, changed, label)


_LABEL: Final = slice(128, 384)


def file_system(fd: int) -> str:
    """Return the kind of file system that an open folder lies on, as Linux names it. Empty: unknown."""
    device = os.fstat(fd).st_dev
    wanted, kind = f"{os.major(device)}:{os.minor(device)}", ""
    with suppress(OSError):
        for line in _MOUNTS.read_text("utf-8", errors="replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2:3] == [wanted]:
                kind = rest.split()[0]
    return kind
