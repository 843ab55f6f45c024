"""A check of Linux's limit on the memory maps of a process: XLA:CPU takes three for each kernel of a program.

A step of a model with 18 layers takes 900, and the usual limit is 65,530. XLA does not check the limit: beyond it, the
process is killed by a segmentation fault. So the limit is checked here before a program is compiled or loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langchain_gemma_jax.errors import DeviceMemoryError

A_PROGRAM = 2500  # maps of the largest program: one of 48 layers

_MAPS, _MOST = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
_lock = threading.Lock()
_being_made = 0


def in_use() -> int:
    """Return the number of memory maps of this process."""
    return _MAPS.read_bytes().count(b"\n")


def at_most() -> int | None:
    """Return the most that it may have. None: this system has no limit, or does not show it."""
    try:
        return int(_MOST.read_text())
    except (OSError, ValueError):
        return None


@contextmanager
def room_for_a_program() -> Iterator[None]:
    """Reserve maps for a ``with`` block in which a program is compiled or loaded, perhaps in several threads.

    Raises:
        DeviceMemoryError: there may not be enough maps left, which would end the process.
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
