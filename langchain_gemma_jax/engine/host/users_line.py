"""The line that a warning is about: the user's own, and not the libraries' in between."""

from __future__ import annotations

import sys
from types import FrameType

LIBRARIES = frozenset({
    "asyncio", "concurrent", "contextvars", "deepagents", "functools", "langchain", "langchain_classic",
    "langchain_core", "langchain_gemma_jax", "langgraph", "langsmith", "pydantic", "threading",
})  # fmt: skip
"""Packages that call each other on behalf of the first one's caller."""


def users_line() -> int:
    """Return the ``stacklevel`` with which ``warnings.warn``, called beside this, shows the line of no library.

    Where there is none, as in a thread that a library began, the line of the call itself is shown.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  what ``warnings`` itself counts by
    level = 1
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in LIBRARIES:
            return level
        frame, level = frame.f_back, level + 1
    return 1
