"""Copies of an error, for several callers that receive the same one, which keep no arrays alive.

Raising an exception changes it: its traceback grows with every raise. Threads that raise the same object would write
into each other's tracebacks, and the error of a result that is read twice would show both times.
"""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Iterator
from contextlib import suppress

from langchain_gemma_jax.errors import EngineError

_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def again(error: Exception) -> Exception:
    """Return a copy of an error to raise again, with equal type, text, attributes, cause and notes."""
    try:
        twin = copy.copy(error)
    except Exception:  # noqa: BLE001  copying runs the constructor of a class that may be the user's
        twin = None
    if type(twin) is not type(error) or str(twin) != str(error):
        twin = EngineError(f"{type(error).__name__}: {error}")
        twin.__cause__ = error
        return twin
    if notes := getattr(error, "__notes__", None):
        twin.__notes__ = list(notes)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(error.__traceback__)


def clear_frames(error: BaseException | None) -> None:
    """Clear the local variables in the tracebacks of an error and its causes, which would keep arrays alive.

    This affects only functions that have returned.
    """
    for one in _all_of(error):
        traceback.clear_frames(one.__traceback__)


def clear_functions(error: BaseException | None) -> None:
    """Do so where generators and coroutines may go on, among those that raised the error before: theirs stay."""
    for one in _all_of(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if not frame.f_code.co_flags & _SUSPENDED:
                with suppress(RuntimeError):  # it still runs
                    frame.clear()


def _all_of(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error, and what it came from."""
    seen: set[BaseException] = set()
    todo = [error]
    while todo:
        if (one := todo.pop()) is not None and one not in seen:
            seen.add(one)
            yield one
            todo += [one.__cause__, one.__context__]
