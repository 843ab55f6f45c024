"""What may be said of an error where others read it: in a log, or to callers whose request it does not come from.

An error's text can hold anything, a prompt or a schema among it. The device's own errors know of shapes and bytes
alone, so theirs is kept; of all others, what they are called and where they were raised.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import jax

MOST = 300  # characters of a text: those of XLA can be pages


def tells_nothing(error: BaseException) -> bool:
    """Whether an error's text is free of what callers sent."""
    return isinstance(error, jax.errors.JaxRuntimeError)


def named(error: BaseException) -> str:
    """An error for those who must not see what a caller sent: its class, and its text or its place."""
    name = type(error).__name__
    if tells_nothing(error):
        text = str(error)
        return f"{name}: {text[:MOST]}{'...' if len(text) > MOST else ''}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{name} in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else name
