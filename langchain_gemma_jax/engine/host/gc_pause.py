"""Control of garbage collection: paused while a process gets ready to answer, run when memory has to be freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_later() -> Iterator[None]:
    """Pause garbage collection in a ``with`` block.

    Importing JAX makes some hundred thousand objects. A collection visits all of them, which takes 40 ms, and would
    come just while a model is loaded. If several threads are in such a block, the first one to leave ends the pause.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def free_deleted_arrays() -> None:
    """Free the memory of deleted arrays now.

    On the CPU, JAX shares numpy's memory instead of copying it, and releases it at the next garbage collection, not
    when the array is deleted. Collecting the youngest generation is enough, and takes almost no time.
    """
    gc.collect(0)
