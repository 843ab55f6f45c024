"""The engine's bars, and how far each was reached. No row is ever left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.engine import engine_figures as of
from benchmarks.running.bars import Row, verdict
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures, Run
from benchmarks.work.conversation import AT_ONCE, NEW_TOKENS

ONE_ROW = 1


class NothingToJudgeError(ValueError):
    """Measurements that say nothing about a bar. The message says why."""


@dataclass(frozen=True)
class Found:
    """A figure of ours, what it stands beside, and the value that the bar is about."""

    ours: str
    beside: str
    value: float
    is_ratio: bool = True


@dataclass(frozen=True)
class Bar:
    """A demand on our engine, alone or beside a rival."""

    work: str
    shown: str  # the bar, in words
    shortfall: Callable[[float], float]  # of a value: the share of the bar that is missing; none or less is reached
    find: Callable[[Figures, Figures], Found]  # in our figures and the rival's
    rival: str = OURS

    def row(self, run: Run, dtype: str) -> Row:
        try:
            ours, theirs = (_measured(run, name, dtype) for name in (OURS, self.rival))
            found = self.find(ours, theirs)
        except NothingToJudgeError as error:
            return Row(self.work, dtype, "–", "–", ratio=None, bar=self.shown, verdict=f"not measured: {error}")
        ratio = found.value if found.is_ratio else None
        return Row(self.work, dtype, found.ours, found.beside, ratio, self.shown, verdict(self.shortfall(found.value)))


def rows(run: Run) -> list[Row]:
    """Every bar, in the order of the report."""
    return [bar.row(run, dtype) for bar in BARS for dtype in run.dtypes]


def _measured(run: Run, name: str, dtype: str) -> Figures:
    figures = run.of(name, dtype)
    if not figures.measured:
        raise NothingToJudgeError(f"{name}: {figures.problem}")
    return figures


def _at_least(work: str, bar: float, find: Callable[[Figures, Figures], Found], rival: str = OURS) -> Bar:
    return Bar(work, f"≥ {bar:g} ×", lambda value: 1 - value / bar, find, rival)


def _at_most(work: str, bar: float, unit: str, find: Callable[[Figures, Figures], Found]) -> Bar:
    # Of nothing, anything is too much.
    return Bar(work, f"≤ {bar:g}{unit}", lambda value: value / bar - 1 if bar else value, find)


def _conversation(name: str, ours: Figures, theirs: Figures) -> Found:
    mine, others = of.conversation_seconds(ours), of.conversation_seconds(theirs)
    return Found(f"{mine:.1f} s", f"{name}: {others:.1f} s", others / mine)


def _turns(late: int, early: int, ours: Figures, _: Figures) -> Found:
    then, before = of.seconds_per_new_token(ours, late), of.seconds_per_new_token(ours, early)
    ours_shown, beside = (
        f"{1000 * seconds:.2f} ms of {NEW_TOKENS[turn - 1]}" for seconds, turn in ((then, late), (before, early))
    )
    return Found(ours_shown, f"turn {early}: {beside}", then / before)


def _together(count: int, ours: Figures, _: Figures) -> Found:
    speed, alone = of.at_once(ours, count), of.one_after_another(ours)
    return Found(f"{speed:.0f} tok/s", f"one after another: {alone:.0f} tok/s", speed / alone)


def _drafts(ours: Figures, _: Figures) -> Found:
    for which in (of.REPLAY, of.DRAFTED_REPLAY):
        taught, tokens = (of.replay_count(ours, which, what) for what in ("as_taught", "tokens"))
        if taught < tokens:
            raise NothingToJudgeError(
                f"the answer differs from what was taught in {tokens - taught} of {tokens} tokens"
            )
    drafted, plain = of.replay_speed(ours, of.DRAFTED_REPLAY), of.replay_speed(ours, of.REPLAY)
    return Found(f"{drafted:.0f} tok/s", f"without: {plain:.0f} tok/s", drafted / plain)


def _host(ours: Figures, _: Figures) -> Found:
    share, step = 100 * of.host_share(ours, ONE_ROW), of.step_seconds(ours, ONE_ROW)
    return Found(f"{share:.2f} %", f"a step: {1000 * step:.1f} ms", share, is_ratio=False)


def _bytes(ours: Figures, _: Figures) -> Found:
    size = of.step_bytes(ours, ONE_ROW) / 1024
    return Found(f"{size:.2f} KiB", "–", size, is_ratio=False)


def _compiles(ours: Figures, _: Figures) -> Found:
    return Found(str(of.compiles(ours)), "–", of.compiles(ours), is_ratio=False)


def _flat(late: int, early: int, bar: float) -> Bar:
    work = f"first token of turn {late}, per new token"
    return _at_most(work, bar, " ×", partial(_turns, late, early))


BARS = (
    _at_least("ten turns", 6, partial(_conversation, TRANSFORMERS), TRANSFORMERS),
    _at_least("ten turns", 1.3, partial(_conversation, LLAMA_CPP), LLAMA_CPP),
    _flat(10, 1, 1.5),
    _flat(8, 2, 1.25),
    _flat(9, 3, 1.25),
    _at_least(f"{max(AT_ONCE)} conversations at once", 3.5, partial(_together, max(AT_ONCE))),
    _at_least("a tool-calling turn with drafts", 1.7, _drafts),
    _at_most("the engine's own Python in a step", 3, " %", _host),
    _at_most("copied to the device in a step", 64, " KiB", _bytes),
    _at_most("programs compiled meanwhile", 0, "", _compiles),
)
