"""Warnings about one call: shown in this process, or heard by whoever made the call elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

Hearer: TypeAlias = Callable[[Warning], object]
"""Whoever is told of a warning. Any thread may tell it."""

hearer: ContextVar[Hearer | None] = ContextVar("hearer", default=None)
"""Who hears the warnings about what is asked in this thread or task. None: they are shown in this process."""


def warn(warning: Warning, hears: Hearer | None, stacklevel: int = 1) -> None:
    """Tell whoever hears, or else show the warning as ``warnings.warn`` does."""
    if hears is None:
        warnings.warn(warning, stacklevel=stacklevel + 1)
    else:
        hears(warning)
