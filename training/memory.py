"""Memory that is freed is kept for the next step, rather than given back to the system.

A step of training needs hundreds of megabytes for a moment, and the C library asks the system for each large piece and
gives it back. Then every page is cleared anew when it is touched: a quarter of a step's time on two cores.
"""

from __future__ import annotations

import ctypes
import sys

# Of glibc's malloc.h.
_TRIM_THRESHOLD = -1
_TOP_PAD = -2
_MMAP_MAX = -4
_ARENA_MAX = -8

_NEVER = -1
_AT_ONCE = 64 << 20  # bytes, when more is needed


def keep_what_is_freed() -> bool:
    """Have this process keep its memory; for one that does nothing but train. Whether the C library can."""
    if sys.platform != "linux":
        return False
    set_to = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_to is None:  # another C library than glibc
        return False
    wanted = {_MMAP_MAX: 0, _TRIM_THRESHOLD: _NEVER, _ARENA_MAX: 1, _TOP_PAD: _AT_ONCE}
    done = [set_to(name, value) for name, value in wanted.items()]
    return set(done) == {1}
