"""Warnings about one call: shown in this process, or passed to the receiver that the caller set."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

WarningSink: TypeAlias = Callable[[Warning], object]
"""A receiver of warnings. Any thread may call it."""

warning_sink: ContextVar[WarningSink | None] = ContextVar("warning_sink", default=None)
"""The receiver of warnings about calls in this thread or task. None: they are shown in this process."""


def warn(warning: Warning, warn_to: WarningSink | None, stacklevel: int = 1) -> None:
    """Pass a warning to its receiver or, with None, show it with ``warnings.warn``."""
    if warn_to is None:
        warnings.warn(warning, stacklevel=stacklevel + 1)
    else:
        warn_to(warning)
