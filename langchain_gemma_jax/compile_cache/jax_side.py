"""JAX's side of the cache: for our folder, JAX's own cache reads and writes entries with digests.

Files that JAX writes itself have no digest: a file that was cut off or altered crashes the process or computes
something else. So for our folder JAX is given a cache that uses the store. For any other folder it makes its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

import jax
from jax._src import compilation_cache as jax_cache
from jax._src import lib as jax_lib
from jax._src.compilation_cache_interface import CacheInterface

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.compile_cache.warning import warn_once
from langchain_gemma_jax.config import native_log_level

IsOurs: TypeAlias = Callable[[str | None], bool]
OurStore: TypeAlias = Callable[[], Store | None]
MakeCache: TypeAlias = Callable[[str], tuple[CacheInterface, str] | None]

_HIT: Final = "/jax/compilation_cache/cache_hits"
_FATAL: Final = 3
_NATIVE_LEVELS: Final = {"DEBUG": 0, "INFO": 0, "WARNING": 1, "ERROR": 2, "CRITICAL": _FATAL}

_log = logging.getLogger(__name__)
_this_thread = threading.local()


def setting(name: str) -> Any:
    """Return one of JAX's settings in this thread; None if this release has no such setting."""
    return getattr(jax.config, name, None)


def take_over(is_ours: IsOurs, our_store: OurStore) -> None:
    """Make JAX use a store while its setting names a folder of ours. Call it once in a process.

    Raises:
        AttributeError: this release of JAX makes its cache in a different way.
    """
    make = jax_cache.get_file_cache

    def get_file_cache(path: str) -> tuple[CacheInterface, str] | None:
        if not is_ours(path):
            return make(path)
        cache = StoreCache(path, is_ours, our_store, make)
        return (jax_cache.VerificationCache(cache) if setting("jax_compilation_cache_check_contents") else cache), path

    jax_cache.get_file_cache = get_file_cache
    # If this release of JAX lacks these functions, only its log is less quiet.
    if hasattr(jax_cache, "get_executable_and_time"):
        jax_cache.get_executable_and_time = _loading(jax_cache.get_executable_and_time, is_ours, our_store)
    if hasattr(jax_cache, "put_executable_and_time"):
        jax_cache.put_executable_and_time = _keeping(jax_cache.put_executable_and_time, is_ours)


class StoreCache(CacheInterface):
    """A cache for JAX that reads and writes entries of the store instead of files.

    JAX makes its cache at the first compile with a folder, and does not read its settings again. Without this package
    it would have no folder until the user sets one. So this cache reads the setting at each use, and gives way to the
    user's folder.
    """

    def __init__(self, path: str, is_ours: IsOurs, our_store: OurStore, make: MakeCache) -> None:
        self._path = Path(path)  # JAX logs it
        self._is_ours, self._our_store, self._make = is_ours, our_store, make
        self._theirs: CacheInterface | None = None  # the cache for the user's folder. Once made it stays, as in JAX

    def get(self, key: str) -> bytes | None:
        if (theirs := self._named_by_user()) is not None:
            found: bytes | None = theirs.get(key)
            return found
        store = self._store()
        entry = None if store is None else store.get(_name(key))
        return None if entry is None else entry.payload

    def put(self, key: str, value: bytes) -> None:
        if (theirs := self._named_by_user()) is not None:
            theirs.put(key, value)
        elif (store := self._store()) is not None:
            seconds: float = getattr(_this_thread, "compile_seconds", 0.0)
            store.put(_name(key), value, label=key.rpartition("-")[0], seconds=seconds)

    def _store(self) -> Store | None:
        return self._our_store() if self._is_ours(_named()) and not _bypassed() else None

    def _named_by_user(self) -> CacheInterface | None:
        path = _named()
        if self._theirs is None and path and not self._is_ours(path) and (made := self._make(path)) is not None:
            self._theirs, _ = made
        return self._theirs


@contextmanager
def bypass_store() -> Iterator[None]:
    """Keep JAX's cache in this thread away from the store, for code that stores its programs there itself."""
    _this_thread.bypassing = getattr(_this_thread, "bypassing", 0) + 1
    try:
        yield
    finally:
        _this_thread.bypassing -= 1


@contextmanager
def hits_of_this_thread() -> Iterator[list[str]]:
    """Collect this thread's hits of JAX's cache in the ``with`` block, the user's cache included: one item for each."""
    found: list[str] = []
    here = threading.get_ident()

    def listen(event: str, **_: str | int) -> None:
        if event == _HIT and threading.get_ident() == here:
            found.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_listener(listen)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Silence JAX's native log, except fatal errors, while compiled programs are loaded.

    For each CPU program that is loaded, it prints two errors of 3 KB about unknown tuning hints (``prefer-no-gather``),
    which are harmless. Real failures are still raised.
    """
    _quiet.begin()
    try:
        yield
    finally:
        _quiet.end()


class _Quiet:
    """The number of threads that are loading. The last one to finish restores the log level."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading = 0

    def begin(self) -> None:
        with self._lock:
            self._loading += 1
            if self._loading == 1:
                _set_native_level(_FATAL)

    def end(self) -> None:
        with self._lock:
            self._loading -= 1
            if self._loading == 0:
                _set_native_level(_NATIVE_LEVELS.get(setting("jax_logging_level"), native_log_level()))


_quiet = _Quiet()


def _set_native_level(level: int) -> None:
    # As JAX itself does it. In a release without this function the messages are printed, which does no harm.
    getattr(getattr(jax_lib, "utils", None), "absl_set_min_log_level", lambda _: None)(level)


def _loading(load: Callable[..., Any], is_ours: IsOurs, our_store: OurStore) -> Callable[..., Any]:
    """Wrap JAX's function from a key to a program: it is quiet, and a program that cannot be loaded counts as missing.

    JAX then compiles it again, and the entry is replaced.
    """

    @wraps(load)
    def get_executable_and_time(cache_key: str, compile_options: Any, backend: Any, *rest: Any, **named: Any) -> Any:
        if not is_ours(_named()):
            return load(cache_key, compile_options, backend, *rest, **named)
        try:
            with quiet_loading() if backend.platform == "cpu" else nullcontext():
                return load(cache_key, compile_options, backend, *rest, **named)
        except Exception as error:
            if setting("jax_raise_persistent_cache_errors"):
                raise
            _log.debug("%s could not be loaded and is compiled again: %s", cache_key, type(error).__name__)
            with suppress(Exception):  # the store itself may be what failed
                if (store := our_store()) is not None:
                    store.discard(_name(cache_key))
            return None, None

    return get_executable_and_time


def _keeping(keep: Callable[..., Any], is_ours: IsOurs) -> Callable[..., Any]:
    """Wrap JAX's function that keeps a program: one that cannot be kept gives a warning, not an error."""

    @wraps(keep)
    def put_executable_and_time(
        cache_key: str, module_name: str, executable: Any, backend: Any, compile_time: float
    ) -> None:
        if not is_ours(_named()):
            keep(cache_key, module_name, executable, backend, compile_time)
            return
        if _bypassed():
            return
        _this_thread.compile_seconds = float(compile_time)
        try:
            keep(cache_key, module_name, executable, backend, compile_time)
        except Exception as error:
            if setting("jax_raise_persistent_cache_errors") or setting("jax_compilation_cache_check_contents"):
                raise
            warn_once(f"Compiled programs are not kept: JAX cannot give {module_name} away ({type(error).__name__}).")
        finally:
            del _this_thread.compile_seconds

    return put_executable_and_time


def _named() -> str | None:
    """Return the folder that JAX's setting names now."""
    path: str | None = setting("jax_compilation_cache_dir")
    return path


def _bypassed() -> bool:
    return getattr(_this_thread, "bypassing", 0) > 0


def _name(key: str) -> str:
    """Return the name in the store for JAX's ``key``, which is the module's name and a digest of what it depends on."""
    return f"jax/{key}"
