"""The progress of downloads and of loading. Downloads draw huggingface_hub's own bars, and count for who asks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def is_wanted(*, progress: bool | None) -> bool:
    """Return True if a bar is to be drawn: as the caller asked; for None, if standard error is a terminal."""
    return progress if progress is not None else sys.stderr is not None and sys.stderr.isatty()


class Transfer:
    """The bytes of a download: how many there are, and how many are here. Any thread may count, and look."""

    def __init__(self) -> None:
        self.commit = ""  # of the files; "" as long as the Hub has not said what it has
        self._total = self._here = 0
        self._lock = threading.Lock()

    def begin(self, commit: str, total: int, here: int) -> None:
        """Begin with the files of a commit, of which some bytes are in the cache already."""
        with self._lock:
            self.commit, self._total, self._here = commit, total, here

    def count(self, arrived: int) -> None:
        """Count bytes that have arrived."""
        with self._lock:
            self._here += arrived

    def end(self) -> None:
        """Count all that is missing: the files are here, and have been looked at."""
        with self._lock:
            self._here = self._total

    @property
    def counts(self) -> tuple[int, int]:
        """The number of bytes that are here, and of all. What was sent twice is not counted above that."""
        with self._lock:
            return min(self._here, self._total), self._total


@contextmanager
def loading_bar(name: str, total: int, *, progress: bool | None) -> Iterator[Callable[[int], None] | None]:
    """Yield a function to call with the bytes of each array; None if no bar is drawn."""
    if not is_wanted(progress=progress):
        yield None
        return
    from tqdm import tqdm

    with tqdm(desc=f"Loading {name}", total=total, unit="B", unit_scale=True, file=sys.stderr) as bar:
        yield bar.update
