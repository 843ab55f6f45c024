"""The one warning of the compile cache: whatever is wrong with it, a process says it once and goes on without it."""

from __future__ import annotations

import threading
import warnings


class CompileCacheWarning(UserWarning):
    """Compiled programs are not kept, or not read. Answers are right all the same, and the first ones late."""


_said = threading.Lock()  # taken by the first warning, and never given back


def warn_once(message: str) -> None:
    """Say it, if nothing was said yet in this process; the log has the rest. Never raises.

    Where warnings are errors, the log gets the first one too: a cache is no reason to fail.
    """
    first = _said.acquire(blocking=False)
    if first:
        try:
            warnings.warn(message, CompileCacheWarning, stacklevel=2)
        except CompileCacheWarning:
            pass
        else:
            return
    import logging  # only now: few processes need it here

    logging.getLogger("langchain_gemma_jax").log(logging.WARNING if first else logging.DEBUG, "%s", message)
