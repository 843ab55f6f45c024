"""Detection of a process that was forked from one in which JAX, or the engine, was in use: neither survives a fork.

The threads of XLA and of the engine do not exist in a forked process, and waiting for them would never end. So each
public entry point checks this first. A process that was forked before JAX was used works like any other.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from langchain_gemma_jax.errors import ClosedError, ForkedError

_BACKENDS = "jax._src.xla_bridge"  # the module that holds JAX's backends, once there are any
_SERVERS = {  # advice for servers that fork their workers, by a module that they import
    "gunicorn": "gunicorn forked it with the application loaded already. Leave out --preload (preload_app = False), or "
    "use no model before its workers run: the first call, warm-up and load belong into the post_fork hook or later.",
    "uwsgi": "uWSGI forked it with the application loaded already. Set lazy-apps = true, or use no model before its "
    "workers run: uwsgidecorators.postfork is called in each.",
    "celery": "Celery forked it after the first use. Use no model before its workers run (signal worker_process_init), "
    "or start it with --pool=threads or --pool=solo.",
}
_TASKS = Path("/proc/self/task")  # on Linux: a folder for each thread, XLA's own among them


class Ancestry:
    """The state of this process that follows from the process that it was forked from."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._in_use = False  # the engine, in this process
        self._inherited = _has_backends() and _threads_are_missing()  # it was forked before this package was imported

    def note_engine(self) -> None:
        """Note that an engine is started in this process, so processes that are forked from it later cannot use one."""
        self._in_use = True

    def refuse_forked(self) -> None:
        """Refuse a process that may not use JAX.

        Raises:
            ForkedError: this one was forked from a process that had used it.
        """
        if os.getpid() != self._process:  # forked without Python's hooks
            self.after_fork()
        if self._inherited:
            raise ForkedError(
                "This process was forked from one that had used JAX, or this package's engine, and neither survives "
                f"that. {_advice()}"
            )

    def after_fork(self) -> None:
        """Update the state in a child, right after the fork."""
        self._process = os.getpid()
        self._inherited = self._inherited or self._in_use or _has_backends() or _is_making_backends()
        self._in_use = False


def refuse_at_the_end(
    is_ending: Callable[[], bool] = sys.is_finalizing, error: type[ClosedError] = ClosedError
) -> None:
    """Refuse a call that a ``__del__`` makes while Python is taken down, when nothing can be imported any more.

    Names of modules may be gone by then: what this needs is given to it at the beginning.

    Raises:
        ClosedError: Python is being taken down.
    """
    if is_ending():
        raise error("This process is ending, and Python is being taken down: no model answers any more.")


def _advice() -> str:
    """Return advice on how to avoid the fork: an option of the server that forked its workers, or spawning."""
    for server, advice in _SERVERS.items():
        if server in sys.modules:
            return advice
    return 'Start processes by spawning: multiprocessing.get_context("spawn"). Or fork before the first use.'


def _has_backends() -> bool:
    """Return True if JAX is in use. This imports nothing."""
    # JAX's own function for this takes a lock, which in a forked process may be held for ever.
    return bool(getattr(sys.modules.get(_BACKENDS), "_backends", None))


def _is_making_backends() -> bool:
    """Return True if a thread was starting JAX's backends at the fork, which will never end in this process."""
    lock = getattr(sys.modules.get(_BACKENDS), "_backend_lock", None)
    return lock is not None and lock.locked()


def _threads_are_missing() -> bool:
    """Return True if all threads of this process are Python's, so that XLA's are missing."""
    try:
        tasks = {int(task.name) for task in _TASKS.iterdir()}
    except (OSError, ValueError):  # no Linux
        return False
    known = {thread.native_id for thread in threading.enumerate()} | {threading.get_native_id()}
    return tasks <= known


ancestry = Ancestry()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ancestry.after_fork)
