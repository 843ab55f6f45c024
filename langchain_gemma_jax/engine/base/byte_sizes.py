"""Bytes as people write them: ``"20GB"``, ``"1.5 GiB"``."""

from __future__ import annotations

import re

from langchain_gemma_jax.errors import InputError

_UNITS = {"": 1, "B": 1} | {
    f"{prefix}{end}": base**power for power, prefix in enumerate("KMGT", 1) for end, base in (("B", 1000), ("iB", 1024))
}
_WRITTEN = re.compile(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})\s*")
_LOWER = {unit.lower(): size for unit, size in _UNITS.items()}


def parse_bytes(name: str, value: object) -> int:
    """Return the number of bytes that a value stands for, at least one.

    Raises:
        InputError: the value is no number of bytes. ``name`` is the caller's name for it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    else:
        match = (
            re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})\s*", value) if isinstance(value, str) else None
        )
        if match is None or match[2].lower() not in _LOWER:
            raise InputError(f'{name}: expected bytes, such as 8_000_000_000, "8GB" or "7.5GiB", found {value!r}.')
        found = int(float(match[1]) * _LOWER[match[2].lower()])
    if not 1 <= found < 2**62:
        raise InputError(f"{name}: expected from 1 to 2**62 bytes, found {value!r}.")
    return found


def show_bytes(count: int) -> str:
    """Return a number of bytes as a text for people, such as ``1.5 GiB``."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(size) >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
