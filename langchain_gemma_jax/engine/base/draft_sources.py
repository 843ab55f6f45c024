"""The names of the sources that drafts come from, and the check of a setting that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_gemma_jax.errors import InputError

SUFFIXES: Final = "suffixes"
"""Past answers of the same scope."""
PROMPT: Final = "prompt"
"""The request's own prompt and answer."""
MTP: Final = "mtp"
"""A drafter: a small model beside this one, which was trained to predict several of its tokens."""
SOURCES: Final = (SUFFIXES, PROMPT, MTP)
"""All sources. Where two expect as much, the first is taken."""


def checked_sources(value: object) -> tuple[str, ...] | None:
    """Return the sources that a setting chooses, in the order of ``SOURCES``; None if it leaves the choice open.

    Raises:
        InputError: the value is no choice.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return SOURCES if value else ()
    names = [*value] if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else [None]
    if not all(isinstance(name, str) and name in SOURCES for name in names) or len(set(names)) < len(names):
        known = ", ".join(f'"{name}"' for name in SOURCES)
        raise InputError(
            f"drafts: expected True, False, None, or a tuple of sources, each once, of {known}; found {value!r}."
        )
    return tuple(name for name in SOURCES if name in names)
