"""A background thread for listeners to records, so that the thread that publishes a record does not wait for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from langchain_gemma_jax.engine.host.own_log import OwnLog

_log = OwnLog(__name__)

MOST_WAITING = 10_000


class BackgroundWorker:
    """Runs functions one after the other in a thread of its own, which is started when it is first needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._todo: deque[Callable[[], object]] = deque()
        self._running = False
        self._lock = threading.RLock()  # a signal handler may come a second time
        self._idle = threading.Event()
        self._idle.set()
        self.dropped = 0  # functions that came when the queue was full

    def do(self, work: Callable[[], object]) -> None:
        """Queue a function, and return at once."""
        with self._lock:
            if len(self._todo) >= MOST_WAITING:
                self.dropped += 1
                return
            self._todo.append(work)
            if not self._running:
                self._running = True
                self._idle.clear()
                try:
                    threading.Thread(target=self._live, name=self._name, daemon=True).start()
                except RuntimeError:  # the system has no more threads, or the process ends
                    self.dropped += len(self._todo)
                    self._todo.clear()
                    self._rest()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the queue is empty. Return False if it is not within ``timeout`` seconds."""
        return self._idle.wait(timeout)

    def _rest(self) -> None:
        self._running = False
        self._idle.set()

    def _live(self) -> None:
        while True:
            with self._lock:
                if not self._todo:
                    self._rest()  # the next function starts another thread
                    return
                work = self._todo.popleft()
            try:
                work()
            except Exception as error:  # noqa: BLE001  an exporter is not our code
                _log.warning("a listener in the background raised %s", type(error).__name__)
