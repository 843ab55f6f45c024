"""Calls that would wait for themselves: from a signal handler, or from a hook, in the midst of what they need.

Python runs a signal handler between two steps of whatever the main thread does. If that holds something which the
handler's own call needs, both wait for ever. Such a call is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_gemma_jax.errors import ReentrantCallError


class Inside:
    """The threads that are in the midst of something which is not to be entered twice by one of them."""

    def __init__(self, what: str) -> None:
        self._what = what  # "it loaded a model"
        self._threads: set[int] = set()  # whose methods are atomic: there is no lock here to wait for

    def __bool__(self) -> bool:
        """Whether any thread is inside."""
        return bool(self._threads)

    @property
    def threads(self) -> frozenset[int]:
        """The threads that are inside, by their ``threading.get_ident()``."""
        return frozenset(self._threads)

    def refuse(self) -> None:
        """Refuse a thread that is inside.

        Raises:
            ReentrantCallError: this thread is inside.
        """
        if threading.get_ident() in self._threads:
            raise ReentrantCallError(
                f"This thread was interrupted while {self._what}, and a call from in there would wait for itself. "
                "Signal handlers, log handlers and other hooks should leave a note, and the call to whoever reads it."
            )

    @contextmanager
    def here(self) -> Iterator[None]:
        """Count this thread as inside for as long as a ``with`` block lasts.

        Raises:
            ReentrantCallError: it is inside already.
        """
        self.refuse()
        me = threading.get_ident()
        try:  # also around the first step, which a handler that raises can follow
            self._threads.add(me)
            yield
        finally:
            self._threads.discard(me)


def from_the_engine() -> ReentrantCallError:
    """The error of a call by one of the engine's own threads."""
    return ReentrantCallError(
        "A call from a thread of the engine itself would wait for itself. Log handlers and other hooks that it runs "
        "should leave a note, and the call to another thread: logging.handlers.QueueHandler does so."
    )
