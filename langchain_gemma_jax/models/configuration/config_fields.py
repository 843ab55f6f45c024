"""Typed look-ups in an untrusted ``config.json``. Errors say where, what was expected, and what was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias, TypeVar, cast

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.strict_json import short

Raw: TypeAlias = Mapping[str, object]
T = TypeVar("T", int, float, bool, str)

LOCAL, GLOBAL = "sliding_attention", "full_attention"

MOST_LAYERS = 1_000  # the largest Gemma has 62
LARGEST_SIZE = 2**31 - 1  # what an array's axis and a token's id can be


class Fields:
    """One JSON object of a configuration, ``outer`` the one around it, ``location`` its name in errors."""

    def __init__(self, raw: Raw, outer: Raw, location: str) -> None:
        self.raw, self.outer, self.location = raw, outer, location

    def error(self, name: str, expected: str, found: object) -> ConfigError:
        """Return the error to raise: the value of ``name`` is not ``expected``."""
        return ConfigError(f"{self.location}: expected {name} to be {expected}, found {short(found)}.")

    def get(self, name: str, default: T) -> T:
        """Return the value of ``name``, of the default's type; null and absent give the default."""
        value = self.raw.get(name)
        return default if value is None else cast("T", self._typed(name, value, type(default)))

    def _typed(self, name: str, value: object, wanted: type[object]) -> object:
        if wanted is float and type(value) is int and abs(value) <= LARGEST_SIZE:
            return float(value)
        if type(value) is not wanted:
            raise self.error(name, wanted.__name__, value)
        if type(value) is float and not math.isfinite(value):
            raise self.error(name, "finite", value)
        return value

    def size(self, name: str, default: int, at_most: int = LARGEST_SIZE) -> int:
        """Return the value like ``get``, for counts and widths: at least 1."""
        value = self.get(name, default)
        if not 1 <= value <= at_most:
            raise self.error(name, f"from 1 to {at_most}", value)
        return value

    def positive(self, name: str, default: float) -> float:
        """Return the value like ``get``, for factors: above 0."""
        value = self.get(name, default)
        if not value > 0:
            raise self.error(name, "positive", value)
        return value

    def positive_or_none(self, name: str, default: float | None) -> float | None:
        """Return the value like ``positive``; null gives None."""
        if name not in self.raw:
            return default
        return None if self.raw[name] is None else self.positive(name, 1.0)

    def table(self, name: str) -> Raw:
        """Return the object called ``name``; null and absent give an empty one."""
        value = self.raw.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.error(name, "an object", value)
        return cast("Raw", value)

    def refuse(self, name: str, why: str, *harmless: object) -> None:
        """Refuse a setting that changes the mathematics and is not implemented."""
        value = self.raw.get(name)
        if value is not None and value is not False and value not in harmless:
            raise UnsupportedModelError(f"{self.location}: {name}={short(value)} is not supported: {why}.")

    def layer_types(self, count: int, period: int) -> tuple[str, ...]:
        """Return the kind of each layer, local or global; by default every ``period``-th is global."""
        value = self.raw.get("layer_types")
        if value is None:
            return tuple(GLOBAL if (i + 1) % period == 0 else LOCAL for i in range(count))
        types = tuple(value) if isinstance(value, list | tuple) else ()
        if len(types) != count or any(kind not in (LOCAL, GLOBAL) for kind in types):
            raise self.error("layer_types", f"a list of {count} times {LOCAL!r} or {GLOBAL!r}", value)
        return cast("tuple[str, ...]", types)

    def token_ids(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return one id or several. A value outside of the text tower's object, for the whole model, comes first."""
        value = self.outer.get(name)
        value = self.raw.get(name) if value is None else value
        if value is None:
            return default
        ids = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not ids or not all(type(i) is int and 0 <= i <= LARGEST_SIZE for i in ids):
            raise self.error(name, "a token id or a list of them", value)
        return cast("tuple[int, ...]", ids)
