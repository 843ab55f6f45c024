"""Errors as JSON: by their name and arguments, so that a caller catches what it would catch in its own process."""

from __future__ import annotations

import json
from typing import Any, cast

from langchain_gemma_jax import errors
from langchain_gemma_jax.chat.answering.cut_off import CutOffError
from langchain_gemma_jax.errors import GemmaJaxError, ServerError

_KNOWN: dict[str, type[GemmaJaxError]] = {
    name: each
    for name, each in [*vars(errors).items(), ("CutOffError", CutOffError)]
    if isinstance(each, type) and issubclass(each, GemmaJaxError)
}
_NOT_OURS = {"__notes__"}


def error_out(error: GemmaJaxError) -> dict[str, Any]:
    """Return an error in the form in which it is sent."""
    reduced = cast("tuple[Any, ...]", error.__reduce__())
    kind, arguments, *state = reduced
    kept = {name: value for name, value in (state[0] if state else {}).items() if name not in _NOT_OURS}
    found = {"name": kind.__name__, "arguments": list(arguments), "state": kept, "message": str(error)}
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError):
        found |= {"arguments": [str(error)], "state": {}}
    return found


def error_in(problem: object) -> GemmaJaxError:
    """Return the error that was sent: one of this package's, or ``ServerError`` for an unknown one."""
    if not isinstance(problem, dict):
        return ServerError(f"The server sent an error in a form that is not known: {problem!r:.200}")
    name, arguments, message = problem.get("name"), problem.get("arguments"), str(problem.get("message", ""))
    kind = _KNOWN.get(name) if isinstance(name, str) else None
    if kind is not None and isinstance(arguments, list):
        try:
            error = kind(*arguments)
        except TypeError:
            kind = None
        else:
            state = problem.get("state")
            for field, value in state.items() if isinstance(state, dict) else ():
                setattr(error, field, tuple(value) if isinstance(value, list) else value)
            return error
    return ServerError(message or f"The server sent an error that is not known here: {name!r:.100}")
