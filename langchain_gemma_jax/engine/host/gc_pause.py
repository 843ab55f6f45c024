"""Garbage collection waits while a process gets ready to answer, and does not when memory is wanted back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_later() -> Iterator[None]:
    """Meanwhile no garbage is collected.

    Importing JAX makes some hundred thousand objects. A collection looks at all of them, for 40 ms, and one is due just
    when a model is loaded. Where several threads are in here, the first one to leave ends it for all.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def let_go() -> None:
    """Have the memory of deleted arrays back now.

    On the CPU, JAX takes over numpy's memory instead of copying it, and lets go of it when garbage is collected the
    next time, not when the array is deleted. The youngest garbage is enough for that, and takes no time.
    """
    gc.collect(0)
