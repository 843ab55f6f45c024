"""Something to do as soon as a module is imported, by whoever imports it. Nothing is imported for it."""

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
    """Do something when a module has been imported; now, if it is there. Of several wishes for one the first counts."""
    if sys.modules.get(name) is not None:
        then()
    elif not any(isinstance(finder, WhenImported) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, WhenImported(name, then))


class WhenImported:
    """Has one module imported as ever, by whoever finds it, and does something right after."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self.name = name
        self._then = then
        self._looking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name or getattr(self._looking, "now", False):  # another finder may ask all, as this one does
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
        """Each search makes a loader of its own, so a search without an import leaves nothing behind."""
        loader = spec.loader
        if loader is None or isinstance(loader, type) or not hasattr(loader, "__dict__"):
            return  # nothing that Python's own finders give
        execute = loader.exec_module

        def execute_and_do(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            # A new list: another thread may be on its way through the old one.
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            self._then()

        vars(loader)["exec_module"] = execute_and_do


def _find_nothing(name: str, path: Sequence[str] | None, target: ModuleType | None) -> None:
    """What a finder of the oldest kind finds."""
