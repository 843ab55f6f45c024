"""Descriptions of errors that are safe to show to others: in a log, or to callers of other requests.

An error's text can contain anything, such as a prompt or a schema. The texts of the device's own errors have only
shapes and bytes, so they are kept. Of other errors only the class and the place are shown.
"""

from __future__ import annotations

import traceback
from pathlib import Path

import jax

MOST = 300  # characters of a text: XLA's can be pages long


def has_no_user_text(error: BaseException) -> bool:
    """Return True if an error's text cannot contain data of callers."""
    return isinstance(error, jax.errors.JaxRuntimeError)


def named(error: BaseException) -> str:
    """Return a description of an error without data of callers: its class, and its text or its place."""
    name = type(error).__name__
    if has_no_user_text(error):
        text = str(error)
        return f"{name}: {text[:MOST]}{'...' if len(text) > MOST else ''}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{name} in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else name
