"""Typed look-ups in the metadata of a GGUF file. Errors say where, what was expected, and what was found."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import ConfigError
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.header import Header, Strings, Value

T = TypeVar("T", int, float, bool, str)


class Metadata:
    """A file's metadata. ``location`` is its name in errors, ``architecture`` the prefix of its own keys."""

    def __init__(self, header: Header, location: str) -> None:
        self._values, self.location = header.metadata, location
        self.architecture = self.text("general.architecture", "")

    def error(self, name: str, expected: str, found: object) -> ConfigError:
        """Return the error to raise: the value of ``name`` is not ``expected``."""
        return ConfigError(f"{self.location}: expected {name} to be {expected}, found {short(found)}.")

    def text(self, name: str, default: str) -> str:
        """Return the string called ``name``."""
        return self._typed(name, self._values.get(name, default), str)

    def whole(self, name: str, default: int | None = None) -> int | None:
        """Return the whole number called ``name``."""
        value = self._values.get(name)
        return default if value is None else self._typed(name, value, int)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return the bool called ``name``."""
        return self._typed(name, self._values.get(name, default), bool)

    def number(self, name: str, default: float | None = None) -> float | None:
        """Return the number called ``name``, whole or not."""
        value = self._values.get(name)
        if value is None:
            return default
        return float(value) if type(value) is int else self._typed(name, value, float)

    def whole_numbers(self, name: str) -> list[int] | None:
        """Return the list of whole numbers or bools called ``name``. None: there is none, or it is a single value."""
        values = self.integers(name)
        return None if values is None else [int(value) for value in values.tolist()]

    def integers(self, name: str) -> npt.NDArray[np.generic] | None:
        """Return the list of whole numbers or bools called ``name`` as an array. None: as for ``whole_numbers``."""
        values = self._values.get(name)
        if not isinstance(values, np.ndarray):
            return None
        if values.dtype.kind not in "iub":
            raise self.error(name, "a list of whole numbers", f"a list of {values.dtype}")
        return values

    def numbers(self, name: str) -> npt.NDArray[np.float32] | None:
        """Return the list of numbers called ``name``."""
        values = self._values.get(name)
        if values is None:
            return None
        if not isinstance(values, np.ndarray):
            raise self.error(name, "a list of numbers", values)
        return values.astype(np.float32)

    def strings(self, name: str) -> Strings | None:
        """Return the list of strings called ``name``."""
        values = self._values.get(name)
        if values is None or isinstance(values, Strings):
            return values
        raise self.error(name, "a list of strings", values)

    def forget_strings(self) -> None:
        """Free the memory of all lists of strings. They cannot be read any more."""
        for value in self._values.values():
            if isinstance(value, Strings):
                value.forget()

    def own(self, name: str) -> str:
        """Return the full name of one of the architecture's own values."""
        return f"{self.architecture}.{name}"

    def _typed(self, name: str, value: Value, wanted: type[T]) -> T:
        if type(value) is not wanted:
            raise self.error(name, wanted.__name__, value)
        return value
