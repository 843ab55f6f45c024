"""Patches of JAX's entry points for host memory: one patch for each process while any guard is open, undone after that.

JAX has no hook for copies: its transfer guard can forbid them or log them, but reports neither the bytes nor the line
of code. So while a guard is open, calls of compiled functions take JAX's slow path through Python. There their
arguments pass JAX's table of handlers, and patched handlers for host arrays report each copy. Nothing is traced or
compiled again for this: only the fast-path caches in front of the compiled programs are cleared, and JAX fills them
again afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

# ruff: noqa: SLF001  these are JAX's private names; if one is missing in a version, `open` says so


class Watcher(Protocol):
    """The receiver of reports about copies: a guard."""

    def to_device(self, arrays: Sequence[Any], *, explicit: bool) -> None: ...

    def between_devices(self, sizes: Sequence[int], *, explicit: bool) -> None: ...

    def to_host(self, nbytes: int, *, explicit: bool) -> None: ...


class Entrances:
    """The patch, with a count of the guards that need it."""

    def __init__(self, watcher: Callable[[], Watcher | None]) -> None:
        """``watcher`` returns the guard of the current context, or None."""
        self._watcher = watcher
        self._open = 0
        self._undo: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    def open(self) -> str:
        """Add a guard, with the patch if it is the first. Return "", or the reason why this JAX cannot be patched."""
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
        """Remove a guard. After the last one the patch is undone."""
        with self._lock:
            self._open -= 1
            if not self._open:
                self._take_back()

    def _patch(self) -> None:
        from jax._src import config, pjit
        from jax._src.array import ArrayImpl

        shortcuts = (pjit._cpp_pjit_cache_fun_only, pjit._cpp_pjit_cache_explicit_attributes)
        state, watcher = getattr(config, "guard_lib").thread_local_state, self._watcher  # noqa: B009  it is no export
        _ = (state().explicit_device_put, state().explicit_device_get)

        self._patch_handlers()
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

    def _patch_handlers(self) -> None:
        """Have arguments counted on their way through JAX's table of handlers."""
        from jax._src import config, literals
        from jax._src.array import ArrayImpl
        from jax._src.interpreters import pxla

        state, watcher = getattr(config, "guard_lib").thread_local_state, self._watcher  # noqa: B009  it is no export

        def counted(handler: Callable[..., Any]) -> Callable[..., Any]:
            def handle(arrays: Sequence[Any], *rest: Any) -> Any:
                if (watch := watcher()) is not None:
                    watch.to_device(arrays, explicit=state().explicit_device_put)
                return handler(arrays, *rest)

            return handle

        def moved(handler: Callable[..., Any]) -> Callable[..., Any]:
            def handle(arrays: Sequence[Any], shardings: Sequence[Any], *rest: Any) -> Any:
                if (watch := watcher()) is not None and (sizes := list(_from_elsewhere(arrays, shardings))):
                    watch.between_devices(sizes, explicit=state().explicit_device_put)
                return handler(arrays, shardings, *rest)

            return handle

        handlers = pxla.shard_arg_handlers
        # A Python number is a kind of its own: a list of them comes as so many arguments.
        hosts = (np.ndarray, literals.TypedNdArray, *literals.typed_scalar_types)
        ways = {before: counted(before) for before in (handlers[kind] for kind in hosts)}
        ways[handlers[ArrayImpl]] = moved(handlers[ArrayImpl])
        for kind in (*hosts, ArrayImpl):
            before = handlers[kind]
            handlers[kind] = ways[before]  # one for all that JAX handles alike: it hands them over together
            self._undo.append(lambda kind=kind, before=before: handlers.__setitem__(kind, before))  # type: ignore[misc]

    def _take_back(self) -> None:
        while self._undo:
            self._undo.pop()()


def _from_elsewhere(arrays: Sequence[Any], shardings: Sequence[Any]) -> Iterator[int]:
    """Yield the bytes of each array that lies on none of the devices that it is handed to, or not on all of them."""
    for array, sharding in zip(arrays, shardings, strict=True):
        if array.size > 1 and not array.is_deleted() and not sharding.device_set <= array.sharding.device_set:
            yield int(array.nbytes)


def _leaves_the_device(array: Any) -> bool:
    """Return True if reading an array copies it. On the CPU the host reads the device's own memory."""
    return any(device.platform != "cpu" for device in array.devices())
