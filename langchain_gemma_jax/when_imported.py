"""Hooks that run a function as soon as another module is imported, without importing it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    _Find: TypeAlias = Callable[[str, Sequence[str] | None, ModuleType | None], ModuleSpec | None]


def when_imported(name: str, then: Callable[[], None]) -> None:
    """Run a function once a module has been imported, or now if it is. Only a module's first function is kept."""
    if sys.modules.get(name) is not None:
        then()
    elif not any(isinstance(finder, WhenImported) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, WhenImported(name, then))


class WhenImported:
    """A finder that lets other finders import one module, and runs a function right after."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name = name
        self._then = then
        self._looking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name or getattr(
            self._looking, "now", False
        ):  # another finder may call all finders, as this one does
            return None
        self._looking.now = True
        try:
            for finder in sys.meta_path:
                find: _Find = getattr(finder, "find_spec", _find_nothing)
                if finder is not self and (spec := find(name, path, target)) is not None:
                    self._add_to(spec)
                    return spec
        finally:
            self._looking.now = False
        return None

    def _add_to(self, spec: ModuleSpec) -> None:
        """Patch the loader of a spec. Each search makes a new loader, so a search without an import has no effect."""
        loader = spec.loader
        if loader is None or isinstance(loader, type) or not hasattr(loader, "__dict__"):
            return  # not from Python's own finders
        execute = loader.exec_module

        def execute_and_do(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            # A new list: another thread may be iterating over the old one.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            self._then()

        vars(loader)["exec_module"] = execute_and_do


def _find_nothing(name: str, path: Sequence[str] | None, target: ModuleType | None) -> None:
    """Stand in for ``find_spec`` of finders that lack it: find no module."""
