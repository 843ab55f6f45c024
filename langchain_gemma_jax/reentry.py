"""Refusal of calls that would wait for themselves: from a signal handler or a hook that interrupted the same work.

Python runs a signal handler between two bytecodes of the main thread. If that thread holds something that the handler's
own call needs, both wait for ever. Such a call is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_gemma_jax.errors import ReentrantCallError


class Inside:
    """The threads inside a section that one thread may not enter twice."""

    def __init__(self, what: str) -> None:
        self._what = what  # "it loaded a model"
        self._threads: set[int] = set()  # its methods are atomic, so this needs no lock

    def __bool__(self) -> bool:
        """Return True if any thread is inside."""
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
                "Signal handlers, log handlers and other hooks should leave a note, so that another "
                "thread makes the call."
            )

    @contextmanager
    def here(self) -> Iterator[None]:
        """Count this thread as inside for as long as a ``with`` block lasts.

        Raises:
            ReentrantCallError: it is inside already.
        """
        self.refuse()
        me = threading.get_ident()
        try:  # also around the first statement: a handler that raises can come after it
            self._threads.add(me)
            yield
        finally:
            self._threads.discard(me)


def from_the_engine() -> ReentrantCallError:
    """Return the error for a call by one of the engine's own threads."""
    return ReentrantCallError(
        "A call from a thread of the engine itself would wait for itself. Log handlers and other hooks that it runs "
        "should leave a note, and the call to another thread: logging.handlers.QueueHandler does so."
    )
