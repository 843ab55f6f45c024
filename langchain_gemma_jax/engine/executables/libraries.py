"""The compiled programs of an engine's models: one library for all models of one shape in one place."""

from __future__ import annotations

import threading
import weakref

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import CompileCounter
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables.background import Background, workers
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.models.placement import Placement


class Libraries:
    """The program libraries of one engine, and the threads that make programs beside the owner thread."""

    def __init__(self, events: Events) -> None:
        self.tally = Tally(events=events)
        self.compiles = CompileCounter()
        self.background = Background(workers(), self.compiles)
        self._lock = threading.Lock()
        # With the last model of a shape its programs go.
        self._known: weakref.WeakValueDictionary[tuple[Shape, Placement], Library] = weakref.WeakValueDictionary()

    def of(self, shape: Shape, where: Placement, name: str) -> Library:
        """Return the library of a model's shape in a place; ``name`` is the model's, for people."""
        with self._lock:
            library = self._known.get((shape, where))
            if library is None:
                library = library_of(Programs(shape, where), self.tally, name, self.background)
                self._known[shape, where] = library
        return library

    def all(self) -> list[Library]:
        """Return the libraries that somebody still has."""
        with self._lock:
            return list(self._known.values())


def library_of(programs: Programs, tally: Tally, name: str, background: Background) -> Library:
    """A library, with the store of its devices."""
    from langchain_gemma_jax.compile_cache.install import store_for

    return Library(
        programs,
        store_for(programs.placement.devices[0]),
        tally,
        name=name,
        background=background,
    )
