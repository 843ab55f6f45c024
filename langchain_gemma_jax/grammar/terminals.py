"""The parts of a text that have no further structure, in llguidance's language for terminals.

Regular expressions there are Rust's, they mean the whole text, and they may be joined with ``&`` and negated
with ``~``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_gemma_jax.grammar.nodes import Terminal
from langchain_gemma_jax.grammar.pattern_text import ANYTHING, Pattern, exactly

UNWRITTEN = r"\x00-\x08\x0B\x0C\x0E-\x1F\x7F"
"""What strings do not have of which nobody asked anything: control characters, but for line ends and tabs."""
WRITTEN = f"[^{UNWRITTEN}]"


def words(
    patterns: Sequence[Pattern] = (), low: int = 0, high: int | None = None, excluded: Iterable[str] = ()
) -> Terminal:
    """Return the terminal of texts that fit all patterns, have a length in bounds, and are none of the excluded ones.

    Without a pattern it is anything that can be written.
    """
    parts = [f"/{pattern.regex}/" for pattern in patterns]
    if not parts:
        parts.append(f"/{WRITTEN}{count(low, high)}/")
    elif low > 0 or high is not None:
        parts.append(f"/(?s:.){count(low, high)}/")  # beside patterns, any character
    if words := sorted(excluded):
        parts.append(f"~/(?:{'|'.join(map(exactly, words))})/")
    return Terminal(" & ".join(parts), max([low, *(pattern.least for pattern in patterns)]))


def before(marker: str) -> Terminal:
    """Return the terminal of free text in which no line begins with the marker, which is a line by itself."""
    return Terminal(rf"/{ANYTHING}/ & ~/(?:{ANYTHING}\n)?{exactly(marker)}{ANYTHING}/")


def up_to(marker: str) -> Terminal:
    """Return the terminal of free text and the first line that begins with the marker, up to the marker's end."""
    return Terminal(rf"/(?:{ANYTHING}\n)?{exactly(marker)}/", len(marker), lazy=True)


def count(low: int, high: int | None) -> str:
    """Return what a regular expression says behind something to say how often it comes."""
    return "*" if (low, high) == (0, None) else f"{{{low},{'' if high is None else high}}}"
