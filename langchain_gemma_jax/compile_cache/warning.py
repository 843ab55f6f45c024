"""Warnings about files that are kept on disk: a process warns once about each topic, and works without them."""

from __future__ import annotations

import threading
import warnings


class CompileCacheWarning(UserWarning):
    """Compiled programs are not kept, or not read. Answers are still right, and the first ones take longer."""


# The first warning about a topic takes its lock, which is never released.
_TOPICS = (
    "it does not work", "others may look in", "prefixes are not kept", "others may look at prefixes",
    "prefixes of peers",
)  # fmt: skip
_warned = {topic: threading.Lock() for topic in _TOPICS}


def warn_once(message: str, topic: str = "it does not work", category: type[UserWarning] = CompileCacheWarning) -> None:
    """Warn, if this is the first warning about the topic in this process; otherwise write to the log. Never raises.

    If warnings are errors, the first one goes to the log too: a cache is no reason to fail.
    """
    first = _warned[topic].acquire(blocking=False)
    if first:
        try:
            warnings.warn(message, category, stacklevel=2)
        except category:
            pass
        else:
            return
    import logging  # imported here, since few processes need it

    logging.getLogger("langchain_gemma_jax").log(logging.WARNING if first else logging.DEBUG, "%s", message)
