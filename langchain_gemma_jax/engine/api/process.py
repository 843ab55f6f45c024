"""The one engine of this process: made at first use, configured before or after, ended with the process."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.compile_cache import install as compile_cache
from langchain_gemma_jax.config import compile_cache_root
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.other_hosts import OtherHosts
from langchain_gemma_jax.errors import ClosedError, ReentrantCallError
from langchain_gemma_jax.stopping import end_with_process

_lock = threading.RLock()  # of which a thread can ask whether it holds it
_settings = Settings()
_engine: Engine | None = None
_others: OtherHosts | None = None
_exiting = False


def engine() -> Engine:
    """Return this process's engine. The first call starts it; each later one, from any thread, gives the same.

    Raises:
        ForkedError: this process was forked from one that had used JAX.
        ReentrantCallError: a signal handler calls this while its thread was making the engine, or in ``configure``.
        ClosedError: this process is about to end.
    """
    global _engine  # noqa: PLW0603  a singleton is what this module is for
    ancestry.refuse_forked()
    if (running := _engine) is not None and running.alive:
        return running  # without the lock, so that a signal handler gets it at any moment
    _refuse_a_second_time()
    with _lock:
        if _engine is None or not _engine.alive:
            if _exiting:
                raise ClosedError("This process is ending, and its engine ended first.")
            ancestry.note_engine()
            _engine = Engine(_settings, others=_others)
            # Behind the engine's own, and so before it: else a thread could ask for another one in between.
            atexit.unregister(_end_with_process)
            atexit.register(_end_with_process)
        return _engine


def lead(others: OtherHosts) -> None:
    """Have the engine of this process, which was not made yet, put models on the devices of other hosts too.

    Raises:
        ClosedError: it was made already.
    """
    global _others  # noqa: PLW0603
    with _lock:
        if _engine is not None:
            raise ClosedError("The engine of this process was made before the others of its group came.")
        _others = others


def running_engine() -> Engine | None:
    """Return this process's engine if it is running. None: it has none, and none is started for this."""
    running = _engine
    return running if running is not None and running.alive else None


def configure(**changes: object) -> Settings:
    """Change settings of the engine, for the whole process; gives all of them. Without arguments it changes nothing.

        configure(max_waiting=64, kv_bytes=8 * 1024**3)

    Before the first use every setting can be changed. While an engine is running, only one whose change
    needs no new engine; close it first to change the others: ``engine().close()``.

    Raises:
        InputError: there is no such setting, its value is not possible, or an engine is running that has it already.
        ReentrantCallError: a signal handler changes settings while its thread does, or while that makes the engine.
    """
    global _settings  # noqa: PLW0603
    if not changes:
        return _settings
    _refuse_a_second_time()
    if _engine is not None and _engine.alive:
        _engine.refuse_waiting()  # before the lock is waited for
    with _lock:
        new = _settings.replace(**changes)
        if new != _settings and _engine is not None and _engine.alive:
            _engine.reconfigure(new)
        if (new.cache_dir, new.cache_bytes) != (_settings.cache_dir, _settings.cache_bytes):
            _move_cache(new)
        _settings = new
        return _settings


def _refuse_a_second_time() -> None:
    """A signal handler runs in the midst of what its thread does: neither may find the other's work half done."""
    if _lock._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001  as threading.Condition asks it
        raise ReentrantCallError(
            "This thread was interrupted while it made the engine or changed its settings, and a call of engine() or "
            "configure() from in there would find that half done. Signal handlers should leave a note, and the call "
            "to its readers."
        )


def _move_cache(settings: Settings) -> None:
    if settings.cache_dir == "off":
        place = None
    elif settings.cache_dir is None:
        place = compile_cache_root()
    else:
        place = Path(settings.cache_dir).expanduser()
    compile_cache.move(place, settings.cache_bytes)


def _end_with_process() -> None:
    global _exiting  # noqa: PLW0603  the engine's own thread sees to its end
    _exiting = True
    end_with_process()


def _after_fork_in_child() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()  # the old one may be held for ever, by a thread that did not come along


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
