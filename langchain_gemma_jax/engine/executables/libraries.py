"""The compiled programs of an engine's models: one library for all models of one shape on one device."""

from __future__ import annotations

import threading
import weakref

import jax

from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.executables.library import Library, Tally


class Libraries:
    """Those of one engine."""

    def __init__(self, background: Background) -> None:
        self.tally = Tally()
        self._background = background
        self._lock = threading.Lock()
        # With the last model of a shape its programs go.
        self._known: weakref.WeakValueDictionary[tuple[Shape, jax.Device], Library] = weakref.WeakValueDictionary()

    def of(self, shape: Shape, device: jax.Device, name: str) -> Library:
        """That of a model; ``name`` is the model's, for people."""
        with self._lock:
            library = self._known.get((shape, device))
            if library is None:
                library = library_of(Programs(shape, device), self.tally, name, self._background)
                self._known[shape, device] = library
        return library

    def all(self) -> list[Library]:
        """Those that somebody still has."""
        with self._lock:
            return list(self._known.values())


def library_of(programs: Programs, tally: Tally, name: str, background: Background) -> Library:
    """A library, with the store of its device."""
    from langchain_gemma_jax.compile_cache.install import store_for

    return Library(
        programs,
        store_for(programs.device),
        tally,
        name=name,
        later=background.submit,
        ended=lambda: background.closed,
    )
