"""Memory that was freed, given back to the system, which the allocator keeps otherwise for whoever asks next."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def give_back() -> None:
    """Give back what was freed between things that stay: making a large vocabulary leaves a third of it behind.

    For the moment before something large is loaded, which could not use these pieces. Takes a few milliseconds, and
    does nothing where the system's allocator has no such function.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
