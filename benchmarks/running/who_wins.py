"""A small table of wins and losses: this package beside the best rival of each row, for a page of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchmarks.running.bars import Row
from benchmarks.running.release_report import Results
from benchmarks.running.report import sections
from benchmarks.work.conversation import NEW_TOKENS
from benchmarks.work.long_context import LONG, RESULT, SAID, VERY_LONG
from benchmarks.work.several import OBJECT
from benchmarks.work.workload import LONG_PROMPT

WORKS: Mapping[str, str] = MappingProxyType(
    {
        "decode": "answers, a token at a time",
        f"decode behind {VERY_LONG:,}": f"the same after {VERY_LONG:,} tokens",
        f"prefill of {LONG_PROMPT}": f"a prompt of {LONG_PROMPT} tokens",
        f"prefill of {LONG:,}": f"a prompt of {LONG:,} tokens",
        f"first token behind {min(NEW_TOKENS)} new ones": f"first token of a turn with {min(NEW_TOKENS)} new tokens",
        f"first token behind a result of {RESULT} and {SAID:,} before it": (
            f"first token after a tool's result, {RESULT} tokens after {SAID:,}"
        ),
        "8 at once": "eight conversations at once",
        f"{OBJECT} tokens under a grammar": f"an object of {OBJECT} tokens, held to its schema",
        "ten turns": "an agent's ten turns",
    }
)
"""The works of the page, and their names there, by what the files' benchmark calls them."""


def who_wins(every: Sequence[Results]) -> str:
    """Return the tables, one for each class of processor and Python."""
    return sections(*filter(None, map(_of_results, every)))


def _of_results(results: Results) -> str:
    rows = {(row.work, row.dtype): row for row in results.rows.get("files", ()) if row.work in WORKS}
    kinds = list(dict.fromkeys(kind for _, kind in rows))
    if not kinds:
        return ""
    lines = [f"| on {results.name}, {results.made} | {' | '.join(kinds)} |", "|---" * (1 + len(kinds)) + "|"]
    for work, words in WORKS.items():
        if cells := [_cell(rows.get((work, kind))) for kind in kinds]:
            lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Row | None) -> str:
    if row is None or row.ratio is None:
        return "–"
    said = f"{row.ratio:.2f} ×"
    return f"{f'**{said}**' if row.ratio >= 1 else said} {row.beside.partition(':')[0]}"
