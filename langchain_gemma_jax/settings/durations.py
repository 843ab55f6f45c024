"""Durations as people write them: a number of seconds, or a text such as "5m"."""

from __future__ import annotations

import re
from numbers import Real
from typing import cast

from langchain_gemma_jax.errors import InputError

FORMS = 'seconds, or a duration such as "5m", "1h30m" or "90s"'

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(h|ms|m|s|us|µs|ns)")
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,12})?")
_LONGEST = 64  # characters


def seconds_of(value: object, where: str) -> float:
    """Return a duration in seconds, which may be negative: what that means is for the caller to say.

    >>> seconds_of("1h30m", "keep_alive"), seconds_of("-1", "keep_alive"), seconds_of(300, "keep_alive")
    (5400.0, -1.0, 300.0)

    Raises:
        InputError: it is no duration.
    """
    if isinstance(value, str):
        found = _read(value.strip()) if len(value) <= _LONGEST else None
    else:
        found = None if isinstance(value, bool) or not isinstance(value, Real) else float(cast("float", value))
    if found is None or not abs(found) < 2**31:
        raise InputError(f"{where}: expected {FORMS}; found {value!r:.80}.")
    return found


def _read(text: str) -> float | None:
    sign, bare = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if _NUMBER.fullmatch(bare):
        return sign * float(bare)
    parts = list(_PART.finditer(bare))
    if not parts or "".join(each[0] for each in parts) != bare:
        return None
    return sign * sum(float(each[1]) * _UNITS[each[2]] for each in parts)
