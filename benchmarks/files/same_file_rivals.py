"""Every engine on every file: how fast, how it was driven and what it computed with, or why there are no figures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.engine import engine_figures as of
from benchmarks.files.same_file_bars import LONG_WORK, TALK, long_seconds, measured
from benchmarks.running.figures import ON_FILES, OURS, Run
from benchmarks.running.report import table
from benchmarks.work.long_context import LONG, RESULT, VERY_LONG
from benchmarks.work.workload import LONG_PROMPT, PROMPT


def markdown(run: Run, labels: Sequence[str]) -> str:
    """The table. An engine that could not be measured has its row, with its last words."""
    body = [_row(run, name, label) for label in labels for name in (OURS, *ON_FILES)]
    header = ["engine", "weights", f"prefill of {PROMPT}", f"of {LONG_PROMPT}", f"of {LONG:,}", "decode"]
    more = [
        f"decode behind {VERY_LONG:,}",
        "ten turns",
        f"a result of {RESULT}",
        "loss",
        "computes with",
        "driven with",
    ]
    return table([*header, *more], body)


def _row(run: Run, name: str, label: str) -> list[str]:
    figures = run.of(name, label)
    if not figures.measured:
        return [name, label, *["–"] * 9, f"not measured: {figures.problem}"]
    speeds = [f"{median(figures.prefill(length)):,.0f}" for length in (PROMPT, LONG_PROMPT)]
    long, behind, result = "–", "–", "–"
    if measured(figures, LONG_WORK):
        long, behind = f"{LONG / long_seconds(figures, 'prompt'):,.0f}", f"{1 / long_seconds(figures, 'behind'):.1f}"
        result = f"{long_seconds(figures, 'result'):.3f} s"
    turns = f"{of.conversation_seconds(figures):.1f} s" if measured(figures, TALK) else "–"
    loss = f"{figures.facts['page loss']:.4f}" if "page loss" in figures.facts else "–"
    said = [str(figures.facts.get(fact, "–")) for fact in ("computes with", "driven")]
    return [name, label, *speeds, long, f"{median(figures.decode()):.1f}", behind, turns, result, loss, *said]
