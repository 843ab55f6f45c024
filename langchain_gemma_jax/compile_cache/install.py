"""Points JAX at our cache when this package is imported, even if JAX has already compiled programs.

This imports, starts and writes nothing, and does not change the user's settings. If JAX is not imported yet, it is
pointed there as soon as it is.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langchain_gemma_jax.compile_cache.warning import warn_once
from langchain_gemma_jax.config import compile_cache_root, jax_cache_is_set, processor_class
from langchain_gemma_jax.errors import GemmaJaxError, InputError
from langchain_gemma_jax.when_imported import when_imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import jax

    from langchain_gemma_jax.compile_cache.store import Store

# XLA can keep files of its own in the same folder, which have no digest. Its default setting, and ours.
_XLA_FILES: Final = "jax_persistent_cache_enable_xla_caches"
_XLA_DEFAULT: Final = "xla_gpu_per_fusion_autotune_cache_dir"
_XLA_NOTHING: Final = "none"

_KIND: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def install() -> None:
    """Make JAX keep compiled programs in our cache. Called when the package is imported; a second call does nothing."""
    when_imported("jax", _point_jax)


def _point_jax() -> None:
    _cache.point_jax()


def move(root: Path | None, cap: int | None = None) -> None:
    """Keep compiled programs in another folder from now on, or, with None, not at all; at most ``cap`` bytes of them.

    If the user has pointed JAX at another folder, this applies to the engine's own programs alone.

    Raises:
        InputError: the path is not absolute.
    """
    if root is not None and not root.is_absolute():
        raise InputError(f"cache_dir: expected an absolute folder, or None to keep nothing, found {str(root)!r}.")
    _cache.move(root, cap)


def store_for(device: jax.Device) -> Store | None:
    """Return the store of programs for a device, one object for each folder. None: programs are not kept."""
    return _cache.store_for(device)


def current_store() -> Store | None:
    """Return the store of programs for the first device. JAX's own cache uses it for all devices."""
    import jax

    return _cache.store_for(jax.local_devices()[0])


def current_root() -> Path | None:
    """The folder that programs are kept below. None: nowhere."""
    return _cache.root()


def is_kind(name: str) -> bool:
    """Return True if this can be the name of a folder for the programs of a kind of device."""
    return _KIND.fullmatch(name) is not None


def _plain(folder: Path | None) -> Path | None:
    return None if folder is None else Path(os.path.abspath(folder))  # noqa: PTH100  without following links


class _Cache:
    """The folder of compiled programs, and the state of JAX's settings for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # JAX is not imported under it: the end of JAX's import takes this lock
        self._root: Path | None = None
        self._root_is_known = False
        self._cap: int | None = None  # None: JAX's setting, or the default
        self._platform: str | None = None
        self._stores: dict[tuple[Path, int], Store] = {}
        self._set_by_us: set[str] = set()  # every folder that JAX was pointed at from here
        self._taken_over = False
        self._silenced_xla = False

    def root(self) -> Path | None:
        """Return the root folder. The environment is read once, when JAX is there: a program may change it before."""
        if not self._root_is_known:
            try:
                processor_class()  # an impossible one would give every folder a wrong name
                self._root = _plain(compile_cache_root())
            except (GemmaJaxError, RuntimeError) as error:  # the second: there is no home
                warn_once(f"Compiled programs are not kept: {error}")
            self._root_is_known = True
        return self._root

    def folder(self) -> Path | None:
        from langchain_gemma_jax.compile_cache.platform import platform_folder

        root = self.root()
        if root is None:
            return None
        self._platform = self._platform or platform_folder()
        return root / self._platform

    def store_for(self, device: jax.Device) -> Store | None:
        from langchain_gemma_jax.compile_cache.jax_side import setting
        from langchain_gemma_jax.compile_cache.store import DEFAULT_CAP, Store

        folder = self.folder()
        cap = setting("jax_compilation_cache_max_size") if self._cap is None else self._cap
        if folder is None or not setting("jax_enable_compilation_cache") or cap == 0:
            return None
        kind = re.sub(r"[^a-z0-9]+", "-", device.device_kind.lower()).strip("-") or "device"
        key = folder / kind, (DEFAULT_CAP if cap < 0 else cap)  # -1: the user has set no limit
        return self._stores.get(key) or self._stores.setdefault(key, Store(*key, root=folder.parent))

    def move(self, root: Path | None, cap: int | None) -> None:
        self._root, self._root_is_known, self._cap = _plain(root), True, cap
        if sys.modules.get("jax") is not None:
            self.point_jax(again=True)

    def point_jax(self, *, again: bool = False) -> None:
        """Point JAX at the folder, unless the user has set one, or this was done before. Never raises."""
        try:
            import jax  # this waits for another thread that is importing it
            from jax.experimental.compilation_cache import compilation_cache

            from langchain_gemma_jax.compile_cache import jax_side

            folder = self.folder() if jax_side.setting("jax_enable_compilation_cache") else None
            with self._lock:
                now = jax_side.setting("jax_compilation_cache_dir")
                users = jax_cache_is_set() or (now is not None and now not in self._set_by_us)
                if users or (self._set_by_us and not again):
                    return
                path = None if folder is None else str(folder)
                if path == now:
                    return
                if path is not None:
                    self._take_over(jax_side)
                    self._set_by_us.add(path)  # before the setting: another thread may be compiling
                jax.config.update("jax_compilation_cache_dir", path)
                self._silence_xla(jax.config.update, jax_side.setting(_XLA_FILES), silent=path is not None)
                compilation_cache.reset_cache()  # JAX may have decided on no cache, or on another one
        except Exception as error:  # noqa: BLE001  whatever the error, JAX works without a cache
            warn_once(f"Compiled programs are not kept: {type(error).__name__}: {error}")

    def _take_over(self, jax_side: ModuleType) -> None:
        if not self._taken_over:
            jax_side.take_over(self._set_by_us.__contains__, current_store)
            self._taken_over = True

    def _silence_xla(self, update: Callable[[str, str], None], now: str | None, *, silent: bool) -> None:
        if silent and now == _XLA_DEFAULT:
            update(_XLA_FILES, _XLA_NOTHING)
            self._silenced_xla = True
        elif not silent and self._silenced_xla and now == _XLA_NOTHING:
            update(_XLA_FILES, _XLA_DEFAULT)
            self._silenced_xla = False


_cache = _Cache()
