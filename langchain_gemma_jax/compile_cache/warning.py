"""The warnings of what is kept on the disk: whatever is wrong with it, a process says it once and goes on without."""

from __future__ import annotations

import threading
import warnings


class CompileCacheWarning(UserWarning):
    """Compiled programs are not kept, or not read. Answers are right all the same, and the first ones late."""


# Each is taken by the first warning about it, and never given back.
_TOPICS = ("it does not work", "others may look in", "prefixes are not kept", "others may look at prefixes")
_said = {topic: threading.Lock() for topic in _TOPICS}


def warn_once(message: str, topic: str = "it does not work", category: type[UserWarning] = CompileCacheWarning) -> None:
    """Say it, if nothing was said about the topic yet in this process; the log has the rest. Never raises.

    Where warnings are errors, the log gets the first one too: a cache is no reason to fail.
    """
    first = _said[topic].acquire(blocking=False)
    if first:
        try:
            warnings.warn(message, category, stacklevel=2)
        except category:
            pass
        else:
            return
    import logging  # only now: few processes need it here

    logging.getLogger("langchain_gemma_jax").log(logging.WARNING if first else logging.DEBUG, "%s", message)
