"""The engine's log: an exception in one of the user's log handlers does not stop the engine."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class OwnLog(logging.LoggerAdapter[logging.Logger]):
    """A module's logger, for code on threads that serve other callers' requests."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log like any logger, but never raise."""
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:  # noqa: BLE001  handlers may be the user's
            show_problem("a log handler")

    def process(self, msg: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the message unchanged."""
        return msg, kwargs


def show_problem(whose: str) -> None:
    """Print the current exception, which a hook of the user's raised, to stderr as Python's logging does."""
    if logging.raiseExceptions and sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"--- {whose} raised on a thread of the engine, which goes on ---\n")
            traceback.print_exc(file=sys.stderr)
