"""The settings that are not about sampling: what each of them may be."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import cast

from langchain_gemma_jax.dialects import NAMES
from langchain_gemma_jax.engine.base.guards import Policies
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing.route import as_route

WEIGHTS = ("int8", "int4")
ACTIVATIONS = ("float32", "int8")
DTYPES = ("bfloat16", "float32", "float16")
MOST_TOKENS = 2**31 - 1


def checked_setting(name: str, value: object) -> object:
    """Return a setting's value as it is stored.

    Raises:
        InputError: the value is not possible. The message says which are.
    """
    return _CHECKS[name](name, value)


def _place(name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str) or not value.strip():
        raise _error(name, "a folder, or a model's id on the Hugging Face Hub such as 'google/gemma-3-1b-it'", value)
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _error(name, "a string", value)
    return value


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _error(name, "True or False", value)
    return value


def _seconds(name: str, value: object) -> float:
    # NumPy registers its numbers as Real, which has no order for a type checker.
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= cast("float", value) < 2**31:
        raise _error(name, "seconds from 0 to 2**31, or None for no limit", value)
    return float(value)


def _context(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MOST_TOKENS:
        raise _error(name, "a whole number of tokens from 2 to 2**31 - 1, or None for what the model allows", value)
    return value


def _soft_tokens(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TOKENS:
        raise _error(name, "a whole number of tokens from 1, or None for what the model's files say", value)
    return value


_SCAN: Mapping[str, tuple[type, float, float]] = {  # each with the least and the most that it can be
    "min_crop_size": (int, 1, 2**16),
    "max_num_crops": (int, 1, 16),
    "min_ratio_to_activate": (float, 1, 2**16),
}


def _scan(name: str, value: object) -> bool | dict[str, int | float]:
    """The checked ``pan_and_scan``: on, off or some limits. Those left out are ``models.vision.support.Scan``'s."""
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


def _folders(name: str, value: object) -> list[str]:
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
    if listed is None or not all(isinstance(each, str | os.PathLike) and os.fspath(each) for each in listed):
        raise _error(name, "a list of folders, such as ['./screenshots'], or None for none", value)
    return [str(os.fspath(each)) for each in listed]


def _one_of(choices: tuple[str, ...], none: str = "the checkpoint's own") -> Callable[[str, object], str]:
    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise _error(name, f"one of {', '.join(choices)}, or None for {none}", value)
        return value

    return check


def _devices(name: str, value: object) -> int | str:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**16):
        return value
    raise _error(name, f'a whole number of {name} from 1, or "auto", or None for one', value)


def _error(name: str, expected: str, found: object) -> InputError:
    return InputError(f"{name}: expected {expected}; found {found!r}.")


def _route(name: str, value: object) -> object:  # noqa: ARG001  as all of them
    route = as_route(value)
    return None if route is None else route.plain


def _guards(name: str, value: object) -> object:  # noqa: ARG001  as all of them
    Policies.of(value)
    return dict(value) if isinstance(value, Mapping) else value


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "model": _place,
    "dtype": _one_of(DTYPES),
    "revision": _text,
    "weights": _one_of(WEIGHTS),
    "activations": _one_of(ACTIVATIONS, "what is fastest"),
    "devices": _devices,
    "replicas": _devices,
    "trust_remote_code": _truth,
    "dialect": _one_of(NAMES),
    "scope": _text,
    "timeout": _seconds,
    "max_context": _context,
    "thinking": _truth,
    "parallel_tool_calls": _truth,
    "route": _route,
    "keep_alive": _seconds,
    "app": _text,
    "session": _text,
    "guards": _guards,
    "strict": _truth,
    "max_soft_tokens": _soft_tokens,
    "pan_and_scan": _scan,
    "media_folders": _folders,
    "allow_urls": _truth,
}
