"""``LoopThread``: a thread that tracks itself whether it is running.

``Thread.is_alive`` and ``Thread.join`` cannot be trusted after a signal handler has raised inside one of them, as
Ctrl-C
does: from then on they take a running thread for one that has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class LoopThread:
    """One daemon thread that runs a function, once, from ``start`` on."""

    def __init__(self, run: Callable[[], None], name: str) -> None:
        self.ended = False
        self._run, self._name = run, name
        self._running = threading.Lock()  # locked until it has ended
        self._running.acquire()
        self._claim = threading.Lock()  # taken by the thread that runs it
        self._ident: int | None = None

    @property
    def begun(self) -> bool:
        """True once the thread has begun to run."""
        return self._ident is not None

    @property
    def is_current(self) -> bool:
        """True if the caller is this thread."""
        return threading.get_ident() == self._ident and not self.ended

    def start(self) -> None:
        """Start the thread, if it has not begun. After an interrupt in here it can be called again."""
        if not self.begun:
            threading.Thread(target=self._live, name=self._name, daemon=True).start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the thread's end. Return True if it has ended."""
        most = -1 if timeout is None else min(max(0.0, timeout), threading.TIMEOUT_MAX)
        if not self.ended and self._running.acquire(timeout=most):
            self._running.release()
        return self.ended

    def _live(self) -> None:
        if not self._claim.acquire(blocking=False):  # it was started twice, and this is the second thread
            return
        self._ident = threading.get_ident()
        try:
            self._run()
        finally:
            self.ended = True
            self._running.release()
