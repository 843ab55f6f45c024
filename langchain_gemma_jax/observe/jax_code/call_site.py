"""The line of the user's own code that an event comes from."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

_OURS = str(Path(__file__).parents[2])
_LIBRARIES = ("site-packages", "dist-packages")


def call_site() -> str:
    """Return file, line and function of the innermost frame that belongs to no library; "" if there is none."""
    for frame in frames():
        if not is_library(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
    return ""


def place() -> int:
    """Return a hash of the stack, library code included: the same lines give the same number."""
    return hash(tuple((id(frame.f_code), frame.f_lineno) for frame in frames()))


def of_jax() -> bool:
    """Return True if the function being compiled is one of JAX's own, such as an operation outside ``jax.jit``."""
    for frame in frames():
        code = frame.f_code
        if code.co_name == "cache_miss" and code.co_filename.endswith("pjit.py"):
            module = getattr(frame.f_locals.get("fun"), "__module__", None) or ""
            return module == "jax" or module.startswith("jax.")
        if code.co_name == "apply_primitive":
            return True
    return False


def frames() -> Iterator[FrameType]:
    """Yield the frames from the caller's caller outwards."""
    frame = sys._getframe(2)  # noqa: SLF001  Python has no other way to look at one frame after the other
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


@cache
def is_library(file: str) -> bool:
    """Return True if a file belongs to an installed package or to Python, or if the code has no file."""
    paths = sysconfig.get_paths()
    inside = (paths["stdlib"], paths["platstdlib"], _OURS)
    return file.startswith(("<frozen", "<string>", *inside)) or any(each in file for each in _LIBRARIES)
