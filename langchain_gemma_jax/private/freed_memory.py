"""Freed memory: the allocator keeps it for later requests unless it is asked to return it to the system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def give_back() -> None:
    """Return freed pieces of memory to the system: making a large vocabulary leaves a third of its memory in them.

    Called before something large is loaded, which could not use these pieces. Takes a few milliseconds, and does
    nothing where the system's allocator has no such function.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
