"""Freed memory: the allocator keeps it for later requests unless it is asked to return it to the system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_MOST_KEPT, _OF_ITS_OWN = 14 << 20, 32 << 20  # bytes


def keep_less() -> None:
    """Have the allocator keep at most 14 MiB of free memory at the end of each of its arenas.

    By itself it raises that limit to twice the largest piece ever freed, 64 MiB at most. Each thread of XLA that has
    run a program with a large workspace keeps that much then. The scores of eight rows, over Gemma's vocabulary, take
    less than 14 MiB: memory that is returned after each step has to be zeroed by the system in the next one, and a step
    of eight rows took a third longer with a limit of 4 MiB. Does nothing where the allocator is another one.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            libc = ctypes.CDLL(None)
            libc.mallopt(_TRIM_THRESHOLD, _MOST_KEPT)
            libc.mallopt(_MMAP_THRESHOLD, _OF_ITS_OWN)  # its own highest value: setting one limit fixes the other


def give_back() -> None:
    """Return freed pieces of memory to the system: making a large vocabulary leaves a third of its memory in them.

    Called before something large is loaded, which could not use these pieces. Takes a few milliseconds, and does
    nothing where the system's allocator has no such function.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
