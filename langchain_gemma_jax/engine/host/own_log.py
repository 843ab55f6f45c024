"""The engine's log: what a handler of the user's raises stays with that line, and does not stop the engine."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class OwnLog(logging.LoggerAdapter[logging.Logger]):
    """A module's logger, for code that runs where other people's requests do."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log as a logger does, but never raise."""
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        try:
            super().log(level, msg, *args, **kwargs)
        except Exception:  # noqa: BLE001  handlers are anybody's
            show_problem("a log handler")

    def process(self, msg: Any, kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the message as it is: nothing is added."""
        return msg, kwargs


def show_problem(whose: str) -> None:
    """What was raised just now by a hook of the user's: shown as Python's logging shows such, and no more."""
    if logging.raiseExceptions and sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"--- {whose} raised on a thread of the engine, which goes on ---\n")
            traceback.print_exc(file=sys.stderr)
