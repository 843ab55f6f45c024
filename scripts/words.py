"""Refuses words that make the tone of a translation: ``python scripts/words.py``, which ``make docs`` runs.

Each is printed with its page, its line and what to write instead, and then the exit status is 1. It needs nothing but
Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BRITISH = (
    r"(?:quanti|utili|optimi|seriali|normali|recogni|organi|stabili|penali|summari|initiali|generali|tokeni|reali|minimi)"
    r"s(?:e|ing|ation)|colour|behaviour|neighbour|favour|honour|catalogue|licence|defence|judgement|labelled(?!by)|centre"
    r"|traveller|analyse|learnt|spelt|grey"
)
"""Parts of words in British spelling, in prose and in names. The package is in American spelling."""
INSTEAD = {
    r"so many": "a number, or 'that many'",
    r"whoever|whosoever": "the person: the user, the caller, the client",
    r"(?:any|some|every)body|nobody": "the person: a user, another tenant, no process",
    r"(?:is|are|was|were) told": "'gets', 'sees' or 'knows'",
    r"beside": "'next to', 'compared with', 'in addition to'",
    r"behind": "'after'",
    r"what is asked|what was asked": "'the request'",
    r"anew": "'again'",
    r"as ever|as it were": "nothing",
    r"it stands|as it stands": "'as it is'",
    r"goes? on with": "'continues'",
    r"ha(?:s|ve) something done|ha(?:s|ve) it run": "'runs it'",
    r"comes? to hand|at hand": "'available'",
    r"unasked": "'without a request'",
    r"by itself alone|alone knows": "'only'",
    r"lies? in the (?:folder|memory)": "'is in'",
    rf"\w*(?:{BRITISH})\w*": "American spelling",
    r"failure mode \d": "the symptom",
}
"""Words that are refused, and what an engineer writes instead."""
PATTERNS = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): instead for words, instead in INSTEAD.items()}

NO_PROSE = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence)$|<!-- (?P<what>[^:\n]+): written by .*?<!-- (?P=what): end -->"
    r"|`[^`\n]*`|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)  # code, what programs write, and where links lead


def refused(text: str) -> list[str]:
    """Return the words of a page that are refused, each with its line and what to write instead."""
    prose = NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        f"{number}: {found[0]!r}: write {instead}"
        for number, line in enumerate(prose.splitlines(), 1)
        for pattern, instead in PATTERNS.items()
        for found in pattern.finditer(line)
    ]


def pages() -> list[Path]:
    """Return README.md and the pages."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def main() -> int:
    """Print what is refused; the exit status is 1 if anything is."""
    found = [f"{page.relative_to(ROOT)}:{line}" for page in pages() for line in refused(page.read_text())]
    if found:
        print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
