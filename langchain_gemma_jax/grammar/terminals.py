"""Terminals: parts of a text without further structure, in llguidance's language.

Regular expressions there are Rust's and match the whole text. They may be combined with ``&`` and negated with ``~``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_gemma_jax.grammar.nodes import Terminal
from langchain_gemma_jax.grammar.pattern_text import ANYTHING, Pattern, exactly

UNWRITTEN = r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F"
"""Characters that never occur in a string without a pattern: control characters, except line ends and tabs."""
WRITTEN = f"[^{UNWRITTEN}]"


def words(
    patterns: Sequence[Pattern] = (), low: int = 0, high: int | None = None, excluded: Iterable[str] = ()
) -> Terminal:
    """Return the terminal of texts that match all patterns, have a length in bounds, and are not excluded.

    Without a pattern, any characters but those of ``UNWRITTEN`` are allowed.
    """
    parts = [f"/{pattern.regex}/" for pattern in patterns]
    if not parts:
        parts.append(f"/{WRITTEN}{count(low, high)}/")
    elif low > 0 or high is not None:
        parts.append(f"/(?s:.){count(low, high)}/")  # the patterns decide on the characters
    if words := sorted(excluded):
        parts.append(f"~/(?:{'|'.join(map(exactly, words))})/")
    return Terminal(" & ".join(parts), max([low, *(pattern.least for pattern in patterns)]))


def before(marker: str) -> Terminal:
    """Return the terminal of text in which no line begins with the marker."""
    return Terminal(rf"/{ANYTHING}/ & ~/(?:{ANYTHING}\n)?{exactly(marker)}{ANYTHING}/")


def up_to(marker: str) -> Terminal:
    """Return the terminal of text up to the end of the first marker at the beginning of a line."""
    return Terminal(rf"/(?:{ANYTHING}\n)?{exactly(marker)}/", len(marker), lazy=True)


def count(low: int, high: int | None) -> str:
    """Return the quantifier of a regular expression for a number of repetitions."""
    return "*" if (low, high) == (0, None) else f"{{{low},{'' if high is None else high}}}"
