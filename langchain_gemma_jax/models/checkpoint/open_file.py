"""A file that several threads can read from at any offset, and that is never memory-mapped.

If a mapped file is truncated, the process dies by a signal. With plain reads that is an ordinary error.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError
from langchain_gemma_jax.models.seams.tensor_source import Array


class OpenFile:
    """One file, open until ``close``. ``shown`` is its path in messages."""

    def __init__(self, real: Path, shown: Path) -> None:
        self.path = shown
        self._file, self._lock = real.open("rb"), threading.Lock()
        self.size = self._file.seek(0, os.SEEK_END)

    def fill(self, target: Array, begin: int) -> None:
        """Fill an array with the file's bytes from ``begin`` on.

        Raises:
            CorruptCheckpointError: the file is shorter than when it was opened.
            CheckpointError: the file cannot be read.
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
        """Return ``count`` bytes from ``begin`` on; fewer if the file ends before."""
        with self._lock:
            self._file.seek(begin)
            return self._file.read(count)

    def close(self) -> None:
        """Close it. May be called twice."""
        self._file.close()

    def _read_some(self, room: memoryview, begin: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [room], begin)
        with self._lock:  # on Windows all threads share one file position
            self._file.seek(begin)
            return self._file.readinto(room)
