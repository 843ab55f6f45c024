"""A file that is read at any place, by several threads at once, and never mapped.

A mapped file that somebody cuts off ends the process by a signal, and one that is read is an error like any other.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError
from langchain_gemma_jax.models.seams.tensor_source import Array


class OpenFile:
    """One file, open until ``close``. ``shown`` is what messages call it."""

    def __init__(self, real: Path, shown: Path) -> None:
        self.path = shown
        self._file, self._lock = real.open("rb"), threading.Lock()
        self.size = self._file.seek(0, os.SEEK_END)

    def fill(self, target: Array, begin: int) -> None:
        """Fill an array with the bytes of the file from ``begin`` on.

        Raises:
            CorruptCheckpointError: the file is shorter than when it was opened.
            CheckpointError: it cannot be read.
        """
        room = target.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(room):
            try:
                got = self._read_some(room[done:], begin + done)
            except OSError as error:  # a disk that breaks, a file on a network that was removed
                reason = error.strerror or str(error)
                raise CheckpointError(self.path, "a file that can be read to its end", reason) from error
            if got == 0:
                raise CorruptCheckpointError(
                    self.path,
                    f"{begin + len(room):,} bytes, as when it was opened",
                    f"{begin + done:,} bytes",
                    "It was written to meanwhile. Load the model again when that is over.",
                )
            done += got

    def head(self, begin: int, count: int) -> bytes:
        """Return some bytes of a header; fewer, if the file ends before."""
        with self._lock:
            self._file.seek(begin)
            return self._file.read(count)

    def close(self) -> None:
        """Close it. May be called twice."""
        self._file.close()

    def _read_some(self, room: memoryview, begin: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [room], begin)
        with self._lock:  # Windows has one place in a file, for all threads
            self._file.seek(begin)
            return self._file.readinto(room)
