"""Every engine on every file: how fast, how it was driven and what it computed with, or why there are no figures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.engine import engine_figures as of
from benchmarks.files.same_file_bars import talked
from benchmarks.running.figures import ON_FILES, OURS, Run
from benchmarks.running.report import table
from benchmarks.work.workload import LONG_PROMPT, PROMPT


def markdown(run: Run, labels: Sequence[str]) -> str:
    """The table. An engine that could not be measured has its row, with its last words."""
    body = [_row(run, name, label) for label in labels for name in (OURS, *ON_FILES)]
    header = ["engine", "weights", f"prefill of {PROMPT}", f"of {LONG_PROMPT}", "decode", "ten turns"]
    return table([*header, "computes with", "driven with"], body)


def _row(run: Run, name: str, label: str) -> list[str]:
    figures = run.of(name, label)
    if not figures.measured:
        return [name, label, "–", "–", "–", "–", "–", f"not measured: {figures.problem}"]
    speeds = [median(figures.prefill(PROMPT)), median(figures.prefill(LONG_PROMPT)), median(figures.decode())]
    turns = f"{of.conversation_seconds(figures):.1f} s" if talked(figures) else "–"
    said = [str(figures.facts.get(fact, "–")) for fact in ("computes with", "driven")]
    return [name, label, *(f"{speed:,.1f} tok/s" for speed in speeds), turns, *said]
