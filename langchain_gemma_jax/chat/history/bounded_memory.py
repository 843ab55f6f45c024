"""A memory of bounded bytes, for what is worth keeping and can be done without."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")

ENTRY_BYTES = 320  # that a place in the table takes, measured: also while the table grows, which takes it twice


class BoundedMemory(Generic[V]):
    """Values by digests, the least recently used of which go first. Any thread may use it.

    The bytes are those of the process: of keys, values and the table. ``size`` says how many a value has.
    """

    def __init__(self, most: int, size: Callable[[V], int] = sys.getsizeof) -> None:
        self._most, self._size = most, size
        self._held = 0
        self._values: OrderedDict[bytes, V] = OrderedDict()
        self._lock = threading.RLock()  # of which a thread can ask whether it holds it

    def __len__(self) -> int:
        return len(self._values)

    def keep(self, key: bytes, value: V) -> None:
        """Remember a value, in place of the one that the key had."""
        if self._busy_here or self._bytes(key, value) > self._most:
            return
        with self._lock:
            self._forget(key)
            self._values[key] = value
            self._held += self._bytes(key, value)
            while self._held > self._most:
                self._forget(next(iter(self._values)))

    def get(self, key: bytes) -> V | None:
        """Return the value of a key, if it is still known, and count it as used now."""
        if self._busy_here:
            return None
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    @property
    def _busy_here(self) -> bool:
        """True in a signal handler that interrupted this thread's own use of the memory, which may be half changed."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]  # noqa: SLF001  as threading.Condition does

    def _forget(self, key: bytes) -> None:
        if (value := self._values.pop(key, None)) is not None:
            self._held -= self._bytes(key, value)

    def _bytes(self, key: bytes, value: V) -> int:
        return ENTRY_BYTES + sys.getsizeof(key) + self._size(value)
