"""JAX's entrances for host memory, watched while somebody watches: one patch a process, taken back at the end.

JAX has no hook for copies: its transfer guard can forbid them or write them to the error stream, and says neither how
many bytes they are nor whose line it was. So, while a guard looks, calls of compiled functions take the way through
Python on which their arguments pass JAX's table of handlers, and the handlers for host arrays tell of each. Nothing is
traced or compiled again for it: only the shortcuts in front of the compiled programs are forgotten, and made again
afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

# ruff: noqa: SLF001  what is patched here is JAX's own; what is not there any more is said, and not guessed


class Watcher(Protocol):
    """Whoever is told of copies."""

    def to_device(self, arrays: Sequence[Any], *, explicit: bool) -> None: ...

    def to_host(self, nbytes: int, *, explicit: bool) -> None: ...


class Entrances:
    """The patch, and how many guards need it."""

    def __init__(self, watcher: Callable[[], Watcher | None]) -> None:
        """``watcher`` says who watches what is done in this context, if anybody."""
        self._watcher = watcher
        self._open = 0
        self._undo: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def open(self) -> str:
        """Watch from now on. Returns why that is not possible with this JAX; empty: it is."""
        with self._lock:
            if not self._open:
                try:
                    self._patch()
                except (ImportError, AttributeError, TypeError) as error:
                    self._take_back()
                    return f"this JAX is built otherwise than those that are known ({type(error).__name__})"
            self._open += 1
            return ""

    def close(self) -> None:
        """End one watch. With the last one, JAX is as it was."""
        with self._lock:
            self._open -= 1
            if not self._open:
                self._take_back()

    def _patch(self) -> None:
        from jax._src import config, literals, pjit
        from jax._src.array import ArrayImpl
        from jax._src.interpreters import pxla

        shortcuts = (pjit._cpp_pjit_cache_fun_only, pjit._cpp_pjit_cache_explicit_attributes)
        state, watcher = getattr(config, "guard_lib").thread_local_state, self._watcher  # noqa: B009  it is no export
        _ = (state().explicit_device_put, state().explicit_device_get)

        def counted(handler: Callable[..., Any]) -> Callable[..., Any]:
            def handle(arrays: Sequence[Any], *rest: Any) -> Any:
                if (watch := watcher()) is not None:
                    watch.to_device(arrays, explicit=state().explicit_device_put)
                return handler(arrays, *rest)

            return handle

        handlers = pxla.shard_arg_handlers
        for kind in (np.ndarray, literals.TypedNdArray):
            before = handlers[kind]
            handlers[kind] = counted(before)
            self._undo.append(lambda kind=kind, before=before: handlers.__setitem__(kind, before))  # type: ignore[misc]

        value = ArrayImpl._value
        fetch = value.fget

        def fetched(array: Any) -> Any:
            if array._npy_value is None and (watch := watcher()) is not None and _leaves_the_device(array):
                watch.to_host(int(array.nbytes), explicit=state().explicit_device_get)
            return fetch(array)

        setattr(ArrayImpl, "_value", property(fetched))  # noqa: B010  type checkers take it for a method
        self._undo.append(lambda: setattr(ArrayImpl, "_value", value))

        shortcut = pjit._get_fastpath_data
        pjit._get_fastpath_data = lambda *_, **__: None
        self._undo.append(lambda: setattr(pjit, "_get_fastpath_data", shortcut))
        for cache in shortcuts:
            cache.clear()

    def _take_back(self) -> None:
        while self._undo:
            self._undo.pop()()


def _leaves_the_device(array: Any) -> bool:
    """Whether reading an array copies it. On the CPU the host looks at the device's own memory."""
    return any(device.platform != "cpu" for device in array.devices())
