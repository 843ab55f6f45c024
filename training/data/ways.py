"""Many ways to say one thing: templates that are put together of parts (``ways.txt``).

A few dozen sentences are learned by heart and then no others are understood. Any words between slots, as ``wild``
has them, are no language: a model learns to skip them, and not what they say. These are sentences, and each
template stands for hundreds.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("ways.txt")
_HEAD, _MEANS = "= ", " = "  # before a heading, and between a part's name and what it stands for


def ways(of: str) -> tuple[str, ...]:
    """The templates under this heading.

    Raises:
        ValueError: there is no such heading.
    """
    if of not in (found := _read()):
        raise ValueError(f"expected a heading of {_FILE.name} ({', '.join(sorted(found))}), found {of!r}")
    return found[of]


@cache
def _read() -> dict[str, tuple[str, ...]]:
    _, *blocks = re.split(rf"^{_HEAD}", _FILE.read_text("utf-8"), flags=re.MULTILINE)
    found = {head: tuple(lines) for head, *lines in (block.strip().splitlines() for block in blocks)}
    parts = dict(line.split(_MEANS, 1) for line in found.pop("parts"))
    return {head: tuple(_put_together(line, parts) for line in lines) for head, lines in found.items()}


def _put_together(line: str, parts: dict[str, str]) -> str:
    """A template with its parts, and its ends of line."""
    return re.sub(r"@(\w+)", lambda name: parts[name[1]], line).replace("\\n", "\n")
