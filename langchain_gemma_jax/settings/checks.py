"""Checks of the settings that are not about sampling: each takes a setting's name and value, and returns it as stored.

Each raises an ``InputError`` that says what is possible. The settings of sampling are checked by ``Sampling``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TypeAlias, cast

from langchain_gemma_jax.engine.base.guards import Policies
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing.route import as_route
from langchain_gemma_jax.settings.durations import FORMS, seconds_of

Check: TypeAlias = Callable[[str, object], object]

_SCAN: Mapping[str, tuple[type, float, float]] = {  # each with the least and the most that it can be
    "min_crop_size": (int, 1, 2**16),
    "max_num_crops": (int, 1, 16),
    "min_ratio_to_activate": (float, 1, 2**16),
}


def model_place(name: str, value: object) -> str:
    """Check a model's name."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value.strip():
        raise _error(name, "a folder, or a model's id on the Hugging Face Hub such as 'google/gemma-3-1b-it'", value)
    return value


def adapter_place(name: str, value: object) -> str:
    """Check the place of an adapter."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value.strip():
        raise _error(name, "a folder, a GGUF file or an id on the Hub", value)
    return value


def text(name: str, value: object) -> str:
    """Check a text."""
    if not isinstance(value, str):
        raise _error(name, "a string", value)
    return value


def truth(name: str, value: object) -> bool:
    """Check a truth value."""
    if not isinstance(value, bool):
        raise _error(name, "True or False", value)
    return value


def seconds(name: str, value: object) -> float:
    """Check a number of seconds."""
    # NumPy registers its numbers as Real, which has no order for a type checker.
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= cast("float", value) < 2**31:
        raise _error(name, "seconds from 0 to 2**31, or None for no limit", value)
    return float(value)


def stay(name: str, value: object) -> float:
    """Check how long a model stays: a number of seconds, or a text such as "5m"."""
    found = seconds_of(value, name)
    if found < 0:
        raise _error(name, f"{FORMS}, from 0, or None to stay until memory is needed", value)
    return found


def tokens(least: int, none: str) -> Check:
    """Return a check of a number of tokens. ``none`` says what None stands for."""

    def check(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
            raise _error(name, f"a whole number of tokens from {least} to 2**31 - 1, or None for {none}", value)
        return value

    return check


def scan_limits(name: str, value: object) -> bool | dict[str, int | float]:
    """Check ``pan_and_scan``: on, off or some limits. Those left out are ``models.seams.media_support.Scan``'s."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, Mapping) or not value.keys() <= _SCAN.keys():
        raise _error(name, f"True, False, or a dictionary with some of {', '.join(_SCAN)}", value)
    for key, found in value.items():
        kind, least, most = _SCAN[key]
        whole = isinstance(found, int) and not isinstance(found, bool)
        if not (whole or (kind is float and isinstance(found, float))) or not least <= found <= most:
            what = "a whole number" if kind is int else "a number"
            raise _error(f"{name}: {key}", f"{what} from {least} to {most}", found)
    return dict(value)


def folders(name: str, value: object) -> list[str]:
    """Check a list of folders."""
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
    if listed is None or not all(isinstance(each, str | os.PathLike) and os.fspath(each) for each in listed):
        raise _error(name, "a list of folders, such as ['./screenshots'], or None for none", value)
    return [str(os.fspath(each)) for each in listed]


def one_of(*choices: str, none: str = "the checkpoint's own") -> Check:
    """Return a check that a value is one of these. ``none`` says what None stands for."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _error(name, f"one of {', '.join(choices)}, or None for {none}", value)
        return value

    return check


def device_count(name: str, value: object) -> int | str:
    """Check a number of devices or of replicas."""
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**16):
        return value
    raise _error(name, f'a whole number of {name} from 1, or "auto", or None for one', value)


def route(name: str, value: object) -> object:  # noqa: ARG001  as all of them
    """Check a route, and return it in plain values if it has no policy of its own."""
    found = as_route(value)
    return None if found is None else found.plain


def guard_policies(name: str, value: object) -> object:  # noqa: ARG001  as all of them
    """Check the policies of guards."""
    Policies.of(value)
    return dict(value) if isinstance(value, Mapping) else value


def _error(name: str, expected: str, found: object) -> InputError:
    return InputError(f"{name}: expected {expected}; found {found!r}.")
