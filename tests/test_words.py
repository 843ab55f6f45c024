"""The pages say things in plain American English: words that make the tone of a translation are not in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
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
    r"licences?|quantis\w+|colour|behaviour|catalogue": "American spelling",
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
    """The words of a page that are refused, each with its line and what to write instead."""
    prose = NO_PROSE.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [
        f"{number}: {found[0]!r}: write {instead}"
        for number, line in enumerate(prose.splitlines(), 1)
        for pattern, instead in PATTERNS.items()
        for found in pattern.finditer(line)
    ]


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name if page.parent == DOCS else "the README")
def test_a_page_is_in_plain_words(page):
    assert refused(page.read_text()) == []


@pytest.mark.parametrize("words", ["so many", "whoever", "nobody", "are told", "beside", "behind", "anew", "Licence"])
def test_each_refused_word_is_seen_in_prose_and_in_tables_and_not_in_code(words):
    assert [line.partition(":")[0] for line in refused(f"# Title\n\nThe {words} of it.\n")] == ["3"]
    assert len(refused(f"| a | {words} |\n\n[{words}](x.md)\n")) == 2
    assert refused(f"```text\n{words}\n```\n`{words}` [a](x.md#{words})\n") == []
    assert refused(f"<!-- a: written by b -->\n{words}\n<!-- a: end -->\n") == []


def test_words_that_only_look_like_them_are_let_through():
    assert refused("The inside of besides, a wrongly placed behindhand, retold, is toldX; somebodyX, canewood.") == []
