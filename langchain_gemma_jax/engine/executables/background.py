"""Background threads, in which programs are fetched and compiled while the engine goes on."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any, Protocol, TypeAlias

_Task: TypeAlias = tuple[Callable[[], Any], "Future[Any]"]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers() -> int:
    """Return the number of background threads to use."""
    return max(2, min(cores(), 8))


class ThreadWatcher(Protocol):
    """An observer that each background thread calls at its beginning and end."""

    def watch_this_thread(self) -> None: ...

    def leave_this_thread(self) -> None: ...


class Background:
    """A few threads, which live while there is work.

    XLA releases Python's lock while it compiles and loads, so several threads are faster than one.
    """

    def __init__(
        self,
        workers: int,
        watcher: ThreadWatcher | None = None,
        *,
        name: str = "gemma-jax-background",
        daemon: bool = True,
        at_rest: Callable[[], object] | None = None,
    ) -> None:
        """Make threads when there is work.

        Args:
            workers: the most threads.
            watcher: is called at each thread's beginning and end.
            name: of the threads.
            daemon: the process does not wait for them at its end.
            at_rest: is called by the last thread before it ends, when no work is left.
        """
        self._at_rest = at_rest
        self._workers, self._watcher, self._name, self._daemon = workers, watcher, name, daemon
        self._tasks: deque[_Task] = deque()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.RLock()  # a signal handler may run this code again
        self._closed = False

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Queue a function. After ``close`` it is cancelled at once, and so is a running one that fails then."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                _drop(future)
                return future
            self._tasks.append((work, future))
            if len(self._threads) < self._workers:
                self._start(future)
        return future

    def rest(self) -> None:
        """Have ``at_rest`` called, by a thread that has nothing else to do."""
        self.submit(lambda: None)

    def _start(self, future: Future[Any]) -> None:
        thread = threading.Thread(target=self._live, name=self._name, daemon=self._daemon)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads, or Python, from 3.12 on, is about to end
            self._threads.discard(thread)
            if not self._threads:  # otherwise one of the others runs it
                self._tasks.clear()  # this task alone: a thread ends only when the queue is empty
                future.set_exception(error)

    @property
    def is_current(self) -> bool:
        """True if the caller is one of the threads."""
        return threading.current_thread() in self._threads

    @property
    def closed(self) -> bool:
        """True after ``close``: no more work is begun."""
        return self._closed

    @property
    def busy(self) -> bool:
        """True if any thread is working."""
        with self._lock:
            return bool(self._threads)

    def close(self, timeout: float | None = None) -> bool:
        """Begin no more work. Return True if all work that had begun is over within ``timeout`` seconds."""
        with self._lock:
            self._closed = True
            dropped, self._tasks = list(self._tasks), deque()
            threads = list(self._threads)
        for _, future in dropped:
            _drop(future)
        until = None if timeout is None else time.monotonic() + timeout
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(None if until is None else max(0.0, until - time.monotonic()))
        with self._lock:  # the threads remove themselves: see loop_thread.py
            return self._threads.isdisjoint(threads)

    def _live(self) -> None:
        if self._watcher is not None:
            self._watcher.watch_this_thread()
        try:
            while (task := self._next()) is not None:
                work, future = task
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(work())
                    except BaseException as error:  # noqa: BLE001  it is raised where the result is read
                        # JAX clears its caches while the process ends, and tracing at that time fails.
                        future.set_exception(CancelledError() if self._closed else error)
                del task, work, future
        finally:
            if self._watcher is not None:
                self._watcher.leave_this_thread()
            with self._lock:
                self._threads.discard(threading.current_thread())  # also if ``watch_this_thread`` failed

    def _next(self) -> _Task | None:
        with self._lock:
            if self._tasks:
                return self._tasks.popleft()
            self._threads.discard(threading.current_thread())  # a later task starts another thread
            last = not self._threads
        if last and self._at_rest is not None:
            self._at_rest()
        return None


def _drop(future: Future[Any]) -> None:
    """Cancel a future. The second call notifies those that wait for it, or for several."""
    future.cancel()
    future.set_running_or_notify_cancel()
