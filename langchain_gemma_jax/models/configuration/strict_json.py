"""JSON objects in untrusted files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from langchain_gemma_jax.errors import CorruptCheckpointError

MAX_BYTES = 100_000_000  # the limit that the safetensors format sets for its header


def read_object(path: Path, shown: Path) -> dict[str, object]:
    """Return the JSON object in a file. ``shown`` is the path for messages.

    Raises:
        CorruptCheckpointError: it holds anything else, or is far too long.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise CorruptCheckpointError(shown, f"at most {MAX_BYTES:,} bytes of JSON", f"{size:,} bytes")
    return parse_object(path.read_bytes(), shown)


def parse_object(text: bytes, shown: Path, what: str = "file") -> dict[str, object]:
    """Return the JSON object in ``text``: UTF-8, no name twice in one object, no NaN or Infinity.

    Raises:
        CorruptCheckpointError: it is anything else.
    """
    value = _parsed(text, shown, f"a JSON object as its {what}")
    if not isinstance(value, dict):
        raise CorruptCheckpointError(shown, f"a JSON object as its {what}", f"a JSON {type(value).__name__}")
    return value


def read_objects(path: Path, shown: Path) -> list[dict[str, object]]:
    """Return the list of JSON objects in a file.

    Raises:
        CorruptCheckpointError: it holds anything else, or is far too long.
    """
    expected, size = "a JSON list of objects", path.stat().st_size
    if size > MAX_BYTES:
        raise CorruptCheckpointError(shown, f"at most {MAX_BYTES:,} bytes of JSON", f"{size:,} bytes")
    value = _parsed(path.read_bytes(), shown, expected)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise CorruptCheckpointError(shown, expected, short(value))
    return value


def _parsed(text: bytes, shown: Path, expected: str) -> object:
    try:
        value: object = json.loads(
            text.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:  # bad UTF-8, bad JSON and numbers of 5,000 digits are ValueErrors
        reason = "brackets nested too deeply" if isinstance(error, RecursionError) else _one_line(error)
        raise CorruptCheckpointError(shown, expected, reason) from None
    return value


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    unique: dict[str, object] = {}
    for name, value in pairs:
        if name in unique:
            raise ValueError(f"the name {short(name)} twice")
        unique[name] = value
    return unique


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant}, which is not JSON")


def _one_line(error: ValueError) -> str:
    """Return the error's message without the text that it quotes: that could hold bytes that are not UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return f"a byte that is not UTF-8 at position {error.start}"
    return str(error)


def short(value: object) -> str:
    """Return a value as text for a message: always printable, and never long."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
