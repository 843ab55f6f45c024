"""Warnings as JSON: a warning about a call is issued in the caller's process, not in the server's."""

from __future__ import annotations

import warnings
from typing import Any

from langchain_gemma_jax.chat.calling.base_models import BaseModelWarning
from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.engine.host.users_line import users_line
from langchain_gemma_jax.errors import GuardError
from langchain_gemma_jax.wire.addresses import Address

_KNOWN: dict[str, type[Warning]] = {each.__name__: each for each in (BaseModelWarning, GuardWarning)}
_warned: set[tuple[str, str]] = set()  # said once for each server: these are about a model, not about a call


def warning_out(warning: Warning) -> dict[str, Any]:
    """Return a warning in the form in which it is sent."""
    return {"name": type(warning).__name__, "message": str(warning)}


def warned(value: object, address: Address) -> None:
    """Issue the warning that was sent.

    Raises:
        GuardError: a guard's warning came, and the caller turns warnings into errors. Warning: any other one came, and
            the caller does so.
    """
    if not isinstance(value, dict):
        return
    message, name = str(value.get("message", "")), value.get("name")
    kind = _KNOWN.get(name, UserWarning) if isinstance(name, str) else UserWarning
    if kind is BaseModelWarning:
        if (str(address), message) in _warned:
            return
        _warned.add((str(address), message))
    try:
        warnings.warn(message, kind, stacklevel=users_line())
    except GuardWarning as warning:
        raise GuardError(str(warning)) from None
