"""Points JAX at our cache when this package is imported, whatever was imported or compiled before.

Nothing is imported, started or written for it, and nothing that the user has set is changed. A JAX that
is not imported yet is pointed there as soon as it is.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langchain_gemma_jax.compile_cache.warning import warn_once
from langchain_gemma_jax.config import compile_cache_root, jax_cache_is_set
from langchain_gemma_jax.errors import GemmaJaxError, InputError
from langchain_gemma_jax.when_imported import when_imported

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import jax

    from langchain_gemma_jax.compile_cache.store import Store

# What XLA keeps in files of its own in the same folder, where nothing certifies them: by default, and for us.
_XLA_FILES: Final = "jax_persistent_cache_enable_xla_caches"
_XLA_DEFAULT: Final = "xla_gpu_per_fusion_autotune_cache_dir"
_XLA_NOTHING: Final = "none"

_KIND: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def install() -> None:
    """Have JAX keep what it compiles. The package calls it when it is imported; a second call changes nothing."""
    when_imported("jax", _point_jax)


def _point_jax() -> None:
    _cache.point_jax()


def move(root: Path | None, cap: int | None = None) -> None:
    """Keep compiled programs in another folder from now on, or nowhere; at most ``cap`` bytes of them.

    Where the user has told JAX something else, only the engine's own programs move.

    Raises:
        InputError: it is no absolute path.
    """
    if root is not None and not root.is_absolute():
        raise InputError(f"cache_dir: expected an absolute folder, or None to keep nothing, found {str(root)!r}.")
    _cache.move(root, cap)


def store_for(device: jax.Device) -> Store | None:
    """Where programs for a device are kept: one object a process and folder. None: they are not kept."""
    return _cache.store_for(device)


def current_store() -> Store | None:
    """Where programs for the first device are kept, and all that JAX compiles for anything else."""
    import jax

    return _cache.store_for(jax.local_devices()[0])


def current_root() -> Path | None:
    """The folder that programs are kept below. None: nowhere."""
    return _cache.root()


def is_kind(name: str) -> bool:
    """Whether a folder's name can be one that programs for a kind of device are kept in."""
    return _KIND.fullmatch(name) is not None


def _plain(folder: Path | None) -> Path | None:
    return None if folder is None else Path(os.path.abspath(folder))  # noqa: PTH100  without following links


class _Cache:
    """Where programs are kept, and what JAX was told of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # nothing is imported under it: who imports JAX waits for it in the end
        self._root: Path | None = None
        self._root_is_known = False
        self._cap: int | None = None  # where nothing was said, as JAX's setting says, or the default
        self._platform: str | None = None
        self._stores: dict[tuple[Path, int], Store] = {}
        self._told: set[str] = set()  # every folder that JAX was ever told
        self._taken_over = False
        self._silenced_xla = False

    def root(self) -> Path | None:
        """The environment is asked once, when JAX is there: until then a program may change it."""
        if not self._root_is_known:
            try:
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
        key = folder / kind, (DEFAULT_CAP if cap < 0 else cap)  # -1: the user has not said how much
        return self._stores.get(key) or self._stores.setdefault(key, Store(*key, root=folder.parent))

    def move(self, root: Path | None, cap: int | None) -> None:
        self._root, self._root_is_known, self._cap = _plain(root), True, cap
        if sys.modules.get("jax") is not None:
            self.point_jax(again=True)

    def point_jax(self, *, again: bool = False) -> None:
        """Tell JAX where the folder is, unless the user has, or it was told before. Never raises."""
        try:
            import jax  # complete: another thread that is importing it is waited for
            from jax.experimental.compilation_cache import compilation_cache

            from langchain_gemma_jax.compile_cache import jax_side

            folder = self.folder() if jax_side.setting("jax_enable_compilation_cache") else None
            with self._lock:
                now = jax_side.setting("jax_compilation_cache_dir")
                if jax_cache_is_set() or (now is not None and now not in self._told) or (self._told and not again):
                    return
                path = None if folder is None else str(folder)
                if path == now:
                    return
                if path is not None:
                    self._take_over(jax_side)
                    self._told.add(path)  # before JAX knows it: a compile may be under way in another thread
                jax.config.update("jax_compilation_cache_dir", path)
                self._silence_xla(jax.config.update, jax_side.setting(_XLA_FILES), silent=path is not None)
                compilation_cache.reset_cache()  # it may have settled for none, or for another one
        except Exception as error:  # noqa: BLE001  whatever it is, JAX works without a cache
            warn_once(f"Compiled programs are not kept: {type(error).__name__}: {error}")

    def _take_over(self, jax_side: ModuleType) -> None:
        if not self._taken_over:
            jax_side.take_over(self._told.__contains__, current_store)
            self._taken_over = True

    def _silence_xla(self, update: Callable[[str, str], None], now: str | None, *, silent: bool) -> None:
        if silent and now == _XLA_DEFAULT:
            update(_XLA_FILES, _XLA_NOTHING)
            self._silenced_xla = True
        elif not silent and self._silenced_xla and now == _XLA_NOTHING:
            update(_XLA_FILES, _XLA_DEFAULT)
            self._silenced_xla = False


_cache = _Cache()
