"""The compiled programs of an engine's models: one library for all models of one shape and placement."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import CompileCounter
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.other_hosts import OtherHosts
from langchain_gemma_jax.engine.device.programs import Programs, Shape
from langchain_gemma_jax.engine.executables.background import Background, workers
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.private.freed_memory import give_back


class Libraries:
    """The program libraries of one engine, and the background threads that make programs."""

    def __init__(self, events: Events, others: OtherHosts | None = None) -> None:
        self.tally = Tally(events=events)
        self.compiles = CompileCounter()
        self.background = Background(workers(), self.compiles, at_rest=give_back)
        self._lock, self._others = threading.RLock(), others
        # The programs of a shape are dropped with its last model.
        self._known: weakref.WeakValueDictionary[tuple[Shape, Placement], Library] = weakref.WeakValueDictionary()

    def of(self, shape: Shape, where: Placement, name: str) -> Library:
        """Return the library of a model's shape and placement; ``name`` is the model's, for people."""
        with self._lock:
            library = self._known.get((shape, where))
            if library is None:
                making = () if where.here or self._others is None else (self._others.making(shape, where),)
                library = library_of(Programs(shape, where), self.tally, name, self.background, *making)
                self._known[shape, where] = library
        return library

    def all(self) -> list[Library]:
        """Return the libraries that are still in use."""
        with self._lock:
            return list(self._known.values())


def library_of(
    programs: Programs,
    tally: Tally,
    name: str,
    background: Background,
    making: Callable[[ProgramKey], None] | None = None,
) -> Library:
    """Return a library with the store of its devices. If several hosts share a program, each keeps its own part."""
    from langchain_gemma_jax.compile_cache.install import store_for

    where = programs.placement
    return Library(programs, store_for(where.own[0]), tally, name=name, background=background, making=making)
