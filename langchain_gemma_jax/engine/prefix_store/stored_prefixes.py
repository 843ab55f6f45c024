"""One model's prefixes on disk: the list of them, the search for one that a prompt begins with, and their arrays."""

from __future__ import annotations

import threading
import time
from array import array
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.prefix_store.prefix_file import Mark, PrefixHeader, block_array, packed
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_names import PrefixNames
from langchain_gemma_jax.engine.prefix_store.sealing import Sealing


@dataclass(frozen=True)
class StoredPrefix:
    """A prefix of a certain length that is on disk."""

    file: str
    header: PrefixHeader
    mark: Mark

    @property
    def blocks(self) -> list[int]:
        """The numbers of its blocks: the global layers', then those of its state of the local ones."""
        return [*range(self.header.globals), *self.header.blocks_of(self.mark)]

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.header.nbytes(self.blocks)

    def arrays(self, blocks: Sequence[memoryview], seconds: float) -> PrefixArrays:
        """Return its arrays. ``blocks``: those of ``self.blocks``, verified; ``seconds``: for which they were read."""
        found = [block_array(self.header, index, block) for index, block in zip(self.blocks, blocks, strict=True)]
        globals_ = self.header.globals
        return PrefixArrays(self, tuple(found[:globals_]), tuple(found[globals_:]), seconds)


@dataclass(frozen=True)
class PrefixArrays:
    """Arrays that were read: the global layers' and the rings'. Each is ``[kv_head, slot, head_dim]``."""

    stored: StoredPrefix
    globals: tuple[npt.NDArray[np.generic], ...]
    rings: tuple[npt.NDArray[np.generic], ...]
    seconds: float


class StoredPrefixes:
    """The prefixes of one model. Any thread may use it."""

    def __init__(self, names: PrefixNames, folder: PrefixFolder, sealing: Sealing) -> None:
        self.names = names
        self._folder, self._sealing = folder, sealing
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._files: dict[str, PrefixHeader] = {}
        self._marks: dict[bytes, StoredPrefix] = {}
        self._lengths: list[int] = []  # of all marks, each once, growing
        self._with_length: Counter[int] = Counter()
        self._seen_at = -1

    @property
    def fresh(self) -> bool:
        """True if the folder has not changed since the last ``refresh``."""
        return self._seen_at == self._folder.changed_at()

    @property
    def writes(self) -> bool:
        """True if the folder can be written to."""
        return self._folder.writes

    def refresh(self) -> None:
        """Update the list from the folder. This reads the headers of new files."""
        part = self.names.family_part
        with self._looking:
            seen_at = self._folder.changed_at()
            there = {name for name in self._folder.names() if name.startswith(part)}
            with self._lock:
                gone, new = self._files.keys() - there, there - self._files.keys()
            for name in gone:
                self._drop(name)
            for name in new:
                if (header := self._folder.header(name, self._sealing)) is not None:
                    self._add(name, header)
            self._seen_at = seen_at

    def find(self, scope: str, keys: array[int], more_than: int) -> StoredPrefix | None:
        """Return the longest kept prefix that has more than ``more_than`` keys, and not all. No file is read."""
        with self._lock:
            lengths = [length for length in self._lengths if more_than < length < len(keys)]
            marks = self._marks
            if not lengths:
                return None
            best = None
            for _, digest in self.names.digests(scope, keys, lengths):
                best = marks.get(digest, best)
            return best

    def has(self, scope: str, keys: array[int], length: int) -> bool:
        """Return True if the first ``length`` keys are kept."""
        with self._lock:
            return self.names.digest(scope, keys, length) in self._marks

    def read(self, stored: StoredPrefix) -> PrefixArrays | None:
        """Return the arrays of a prefix, verified. None: it is gone, or it was damaged and has been deleted."""
        began = time.perf_counter()
        blocks = self._folder.blocks(stored.file, stored.blocks, stored.header, self._sealing)
        if blocks is None:
            self._drop(stored.file)
            return None
        return stored.arrays(blocks, time.perf_counter() - began)

    def write(self, header: PrefixHeader, blocks: Sequence[npt.NDArray[np.generic]]) -> str | None:
        """Write a prefix. Return the name of its file; None if it was not written."""
        name = self.names.file(_longest(header).digest)
        parts = packed(header, blocks, self._sealing)
        if not self._folder.write(name, parts):
            return None
        written = self._folder.header(name, self._sealing)
        if written is not None:
            self._add(name, written)
        return name

    def reject(self, stored: StoredPrefix) -> None:
        """Delete a file that cannot be used although its digests match."""
        self._drop(stored.file)
        self._folder.files.reject(stored.file)

    def forget(self, name: str) -> None:
        """Delete a file that is not needed any more."""
        self._drop(name)
        self._folder.files.remove(name)

    def _add(self, name: str, header: PrefixHeader) -> None:
        if header.family != self.names.family or not header.marks or name != self.names.file(_longest(header).digest):
            self._folder.files.reject(name)
            return
        with self._lock:
            self._drop(name)  # it may be an older one
            self._files[name] = header
            for mark in header.marks:
                other = self._marks.get(mark.digest)
                stored = StoredPrefix(name, header, mark)
                if other is None or stored.nbytes < other.nbytes:
                    self._marks[mark.digest] = stored
                if not self._with_length[mark.length]:
                    insort(self._lengths, mark.length)
                self._with_length[mark.length] += 1

    def _drop(self, name: str) -> None:
        with self._lock:
            header = self._files.pop(name, None)
            for mark in () if header is None else header.marks:
                self._with_length[mark.length] -= 1
                if not self._with_length[mark.length]:
                    self._lengths.remove(mark.length)
                if (stored := self._marks.get(mark.digest)) is not None and stored.file == name:
                    del self._marks[mark.digest]
            if header is not None:  # a mark that another file has too now leads to that file
                lost = {mark.digest for mark in header.marks}
                for other, its in self._files.items():
                    for mark in its.marks:
                        if mark.digest in lost:
                            self._marks.setdefault(mark.digest, StoredPrefix(other, its, mark))


def _longest(header: PrefixHeader) -> Mark:
    return max(header.marks, key=lambda mark: mark.length)
