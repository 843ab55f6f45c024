"""Where JAX meets the store: for our folder, JAX's own cache reads and writes sealed entries.

What JAX writes itself is certified by nothing: a file that was cut off or altered crashes the process or
computes something else. So for one folder JAX is given a cache that goes to the store. For any other
folder it makes its own, as ever.
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
    """One of JAX's settings as it is in this thread; None if this release has no such setting."""
    return getattr(jax.config, name, None)


def take_over(is_ours: IsOurs, our_store: OurStore) -> None:
    """Have JAX go to a store for as long as its setting names a folder of ours. To be called once a process.

    Raises:
        AttributeError: this release of JAX makes its cache in another way.
    """
    make = jax_cache.get_file_cache

    def get_file_cache(path: str) -> tuple[CacheInterface, str] | None:
        if not is_ours(path):
            return make(path)
        cache = StoreCache(path, is_ours, our_store, make)
        return (jax_cache.VerificationCache(cache) if setting("jax_compilation_cache_check_contents") else cache), path

    jax_cache.get_file_cache = get_file_cache
    # Where JAX has no such functions, or has renamed them, it is less quiet and nothing else.
    if hasattr(jax_cache, "get_executable_and_time"):
        jax_cache.get_executable_and_time = _loading(jax_cache.get_executable_and_time, is_ours, our_store)
    if hasattr(jax_cache, "put_executable_and_time"):
        jax_cache.put_executable_and_time = _keeping(jax_cache.put_executable_and_time, is_ours)


class StoreCache(CacheInterface):
    """What JAX reads and writes in place of files.

    JAX makes its cache at the first compile that has a folder, and does not look at its settings again.
    Without us it would have had none until the user names one. So this cache looks, and gives way.
    """

    def __init__(self, path: str, is_ours: IsOurs, our_store: OurStore, make: MakeCache) -> None:
        self._path = Path(path)  # which JAX logs
        self._is_ours, self._our_store, self._make = is_ours, our_store, make
        self._theirs: CacheInterface | None = None  # once there is one it stays, as it would have in JAX

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
        return self._our_store() if self._is_ours(_named()) and not _is_aside() else None

    def _named_by_user(self) -> CacheInterface | None:
        path = _named()
        if self._theirs is None and path and not self._is_ours(path) and (made := self._make(path)) is not None:
            self._theirs, _ = made
        return self._theirs


@contextmanager
def aside() -> Iterator[None]:
    """Keep JAX's cache in this thread away from the store, for whoever keeps a program there in a way of their own."""
    _this_thread.aside = getattr(_this_thread, "aside", 0) + 1
    try:
        yield
    finally:
        _this_thread.aside -= 1


@contextmanager
def hits_of_this_thread() -> Iterator[list[str]]:
    """What this thread compiles meanwhile and gets from a cache of JAX's, whoever set that up: one item for each."""
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
    """While compiled programs are loaded, JAX's compiled half says nothing but what is fatal.

    For each program that it loads for the CPU, it prints two errors of 3 KB about tuning hints that it does not
    know (``prefer-no-gather``). They are hints, and no errors. What else goes wrong is raised all the same.
    """
    _quiet.begin()
    try:
        yield
    finally:
        _quiet.end()


class _Quiet:
    """How many threads are loading just now. The last one sets the level that is in force otherwise."""

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
    # As JAX itself does it. In a release without it there are messages, and nothing is wrong.
    getattr(getattr(jax_lib, "utils", None), "absl_set_min_log_level", lambda _: None)(level)


def _loading(load: Callable[..., Any], is_ours: IsOurs, our_store: OurStore) -> Callable[..., Any]:
    """JAX's way from a key to a program, quiet. What cannot be loaded is compiled anew, and replaced."""

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
            _log.debug("%s could not be loaded and is compiled anew: %s", cache_key, type(error).__name__)
            with suppress(Exception):  # what failed may have been the way to the store
                if (store := our_store()) is not None:
                    store.discard(_name(cache_key))
            return None, None

    return get_executable_and_time


def _keeping(keep: Callable[..., Any], is_ours: IsOurs) -> Callable[..., Any]:
    """JAX's way from a program to the cache. A program that cannot be kept was not asked to be: no error."""

    @wraps(keep)
    def put_executable_and_time(
        cache_key: str, module_name: str, executable: Any, backend: Any, compile_time: float
    ) -> None:
        if not is_ours(_named()):
            keep(cache_key, module_name, executable, backend, compile_time)
            return
        if _is_aside():
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
    """The folder that JAX's setting names now."""
    path: str | None = setting("jax_compilation_cache_dir")
    return path


def _is_aside() -> bool:
    return getattr(_this_thread, "aside", 0) > 0


def _name(key: str) -> str:
    """The name in the store of what JAX calls ``key``: the module's name, and a digest of all it depends on."""
    return f"jax/{key}"
