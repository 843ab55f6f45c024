"""The report of the engine's benchmark, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from benchmarks.engine import engine_figures as of
from benchmarks.engine.engine_bars import rows
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures, Run, agreeing
from benchmarks.running.report import bars_table, bullets, busy, machine_and_versions, sections, table
from benchmarks.work.conversation import ANSWER, AT_ONCE, NEW_TOKENS

ENGINES = (OURS, TRANSFORMERS, LLAMA_CPP)
DRAFTED = f"{OURS}, drafts"
STEP_PARTS = ("host", "dispatch", "device")


def markdown(run: Run) -> str:
    """The bars, the conversation turn by turn, what happens at once, drafts, and what it was measured with."""
    parts = [busy(run), bars_table(rows(run)), _conversations(run), *(_turns(run, dtype) for dtype in run.dtypes)]
    return sections(*parts, _at_once(run), _drafts(run), _steps(run), bullets(_facts(run)))


def _conversations(run: Run) -> str:
    body = []
    for dtype in run.dtypes:
        ours = run.of(OURS, dtype)
        for name in ENGINES:
            figures = run.of(name, dtype)
            if not figures.measured:
                body.append([name, dtype, "–", f"{figures.problem}"])
                continue
            body.append([name, dtype, f"{of.conversation_seconds(figures):.1f} s", _same(ours, name, figures, dtype)])
            if name == OURS:
                body.append([DRAFTED, dtype, f"{of.conversation_seconds(figures, of.DRAFTED):.1f} s", "–"])
    return table(["ten turns", "weights", "whole conversation", "tokens as ours"], body)


def _same(ours: Figures, name: str, theirs: Figures, dtype: str) -> str:
    """Count tokens that are ours. Rounding decides in bfloat16, and with llama.cpp's cache of float16, so not there."""
    if name != TRANSFORMERS or dtype != "float32" or not ours.measured:
        return "–"
    return f"{agreeing(of.said(ours), of.said(theirs))} of {len(of.said(ours))}"


def _turns(run: Run, dtype: str) -> str:
    measured = {name: figures for name in ENGINES if (figures := run.of(name, dtype)).measured}
    if not measured:
        return ""
    body, context = [], 0
    for turn, new in enumerate(NEW_TOKENS, start=1):
        milliseconds = [1000 * of.first_token_seconds(figures, turn) for figures in measured.values()]
        cells = [f"{each:,.0f} ({each / new:.1f})" for each in milliseconds]
        body.append([str(turn), str(new), str(context), *cells])
        context += new + ANSWER
    header = [f"{dtype}: turn", "new tokens", "behind", *(f"{name}, ms (a new token)" for name in measured)]
    return f"Time to first token:\n\n{table(header, body)}"


def _at_once(run: Run) -> str:
    body = []
    for dtype, ours in _ours(run):
        alone = of.one_after_another(ours)
        speeds = [(of.at_once(ours, count), alone) for count in AT_ONCE]
        cells = [f"{speed:.0f} ({speed / alone:.2f} ×)" for speed, alone in speeds]
        body.append([dtype, f"{alone:.0f}", *cells])
    header = ["short conversations, tok/s", "one after another", *(f"{count} at once" for count in AT_ONCE)]
    return table(header, body) if body else ""


def _drafts(run: Run) -> str:
    body = []
    for dtype, ours in _ours(run):
        for name, which in (("without drafts", of.REPLAY), ("with drafts", of.DRAFTED_REPLAY)):
            drafted, accepted = (of.replay_count(ours, which, what) for what in ("drafted", "accepted"))
            tokens, taught = (of.replay_count(ours, which, what) for what in ("tokens", "as_taught"))
            share = f"{accepted} of {drafted} ({accepted / drafted:.0%})" if drafted else "–"
            speed, seconds = f"{of.replay_speed(ours, which):.0f}", f"{of.replay_seconds(ours, which):.2f} s"
            body.append([name, dtype, speed, seconds, share, f"{taught} of {tokens}"])
    header = ["tool-calling turn", "weights", "tok/s", "with its prompt", "drafted tokens accepted", "tokens as taught"]
    return table(header, body) if body else ""


def _steps(run: Run) -> str:
    body = []
    for dtype, ours in _ours(run):
        for rows_ in cast("list[int]", ours.facts["step_rows"]):
            parts = [f"{1000 * of.step_seconds(ours, rows_, what):.2f}" for what in ("seconds", *STEP_PARTS)]
            share = f"{of.host_share(ours, rows_):.2%}"
            body.append([str(rows_), dtype, *parts, share, f"{of.step_bytes(ours, rows_):,.0f}"])
    header = ["a step of so many rows", "weights", "ms", *(f"{part}, ms" for part in STEP_PARTS)]
    return table([*header, "host's share", "bytes to the device"], body) if body else ""


def _ours(run: Run) -> Iterator[tuple[str, Figures]]:
    for dtype in run.dtypes:
        if (ours := run.of(OURS, dtype)).measured:
            yield dtype, ours


def _facts(run: Run) -> Iterator[str]:
    yield from machine_and_versions(run, ENGINES)
    for dtype, ours in _ours(run):
        facts = ours.facts
        yield (
            f"{dtype}: {facts['programs']} programs of at most {facts['program_bound']} compiled beforehand in "
            f"{cast('float', facts['compile_seconds']):.0f} s; recipe: {facts['recipe']}"
        )
        again = of.read_again(ours)
        yield f"{dtype}: of what was said before, {again} tokens in ten turns were read again"
