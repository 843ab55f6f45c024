"""Linux gives a process so many pieces of memory, and XLA:CPU takes three of them for each kernel of a program.

A step of a model with 18 layers takes 900, and usually a process may have 65,530. XLA does not look whether there are
any left: it is killed by a segmentation fault. So we look before a program is made or loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_gemma_jax.errors import DeviceMemoryError

A_PROGRAM = 2500  # pieces that the largest may take: one of 48 layers

_MAPS, _MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
_lock = threading.Lock()
_being_made = 0


def in_use() -> int:
    """How many pieces of memory this process has."""
    return _MAPS.read_bytes().count(b"\n")


def at_most() -> int | None:
    """How many it may have. None: that cannot be known here, or nobody counts."""
    try:
        return int(_MOST.read_text())
    except (OSError, ValueError):
        return None


@contextmanager
def room_for_a_program() -> Iterator[None]:
    """Keep room for a ``with`` block in which a program is made or loaded, maybe while other threads do the same.

    Raises:
        DeviceMemoryError: this one could be the last thing that the process does.
    """
    global _being_made  # noqa: PLW0603
    with _lock:
        _being_made += 1
        others = _being_made
    try:
        most = at_most()
        if most is not None and (used := in_use()) + others * A_PROGRAM > most:
            raise DeviceMemoryError(
                f"No more programs can be loaded: each is many pieces of memory, this process has {used:,} of them, "
                f"and Linux allows {most:,}. Allow more (sysctl -w vm.max_map_count=1048576), unload a model, or have "
                "fewer programs: configure(max_context=...) or smaller ladders."
            )
        yield
    finally:
        with _lock:
            _being_made -= 1
