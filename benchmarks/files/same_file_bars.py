"""The bars for one file that two engines open, and how far each was reached. No row is ever left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import cast

from benchmarks.engine import engine_figures as of
from benchmarks.running.bars import Row, verdict
from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, ON_FILES, OURS, Figures, Run
from benchmarks.work.conversation import NEW_TOKENS
from benchmarks.work.workload import LONG_PROMPT, PROMPT

DENSE, FOUR_BITS = ("BF16", "F32"), ("Q4_0", "Q4_K_M")
SHORT_TURNS = [number for number, new in enumerate(NEW_TOKENS, 1) if new == min(NEW_TOKENS)]


@dataclass(frozen=True)
class File:
    """A file that both engines open."""

    size: str
    kind: str
    talks: bool = True  # also in a conversation

    @property
    def label(self) -> str:
        return f"{self.size} {self.kind}"

    @property
    def decode_bar(self) -> float:
        if self.kind in DENSE:
            return 1.0
        return 1.4 if self.size == "270M" else 1.1 if self.kind == "Q8_0" else 1.15

    @property
    def talk_bar(self) -> float:
        return 1.3 if self.size == "270M" else 1.1

    @property
    def bandwidth_bar(self) -> float | None:
        """The share of the memory's speed, where a step is long enough for it."""
        return None if self.size == "270M" else 0.82 if self.kind in FOUR_BITS else 0.87


def rows(run: Run, files: Mapping[str, File]) -> list[Row]:
    """Every bar of every file, in the order of the report."""
    return [row for label, file in files.items() for row in _of_file(run, label, file)]


def _of_file(run: Run, label: str, file: File) -> Iterator[Row]:
    ours, memory = (run.of(name, label) for name in (OURS, BANDWIDTH))
    rivals = {name: run.of(name, label) for name in ON_FILES}

    def faster(work: str, bar: float, find: Callable[[Figures], float], unit: str = "tok/s") -> Row:
        return _beside(work, label, ours, rivals, bar, find, unit)

    yield faster("decode", file.decode_bar, lambda each: median(each.decode()))
    if file.bandwidth_bar is not None:
        yield _of_bandwidth(label, ours, memory, file.bandwidth_bar)
    for length in (PROMPT, LONG_PROMPT):
        yield faster(f"prefill of {length}", 1.0, partial(_prefill, length))
    if file.talks:
        yield faster("ten turns", file.talk_bar, of.conversation_seconds, "s")
        yield faster(f"first token behind {min(NEW_TOKENS)} new ones", 1.0, _short_turn, "s")
    yield _resident(label, ours)


def _prefill(length: int, figures: Figures) -> float:
    return median(figures.prefill(length))


def _short_turn(figures: Figures) -> float:
    return median(of.first_token_seconds(figures, turn) for turn in SHORT_TURNS)


def _missing(work: str, label: str, bar: str, *some: tuple[str, Figures]) -> Row | None:
    for name, figures in some:
        if not figures.measured:
            return Row(work, label, "–", "–", None, bar, f"not measured: {name}: {figures.problem}")
    return None


def _beside(
    work: str,
    label: str,
    ours: Figures,
    rivals: Mapping[str, Figures],
    bar: float,
    find: Callable[[Figures], float],
    unit: str,
) -> Row:
    """Compare with the best rival that did this work. One that failed was not beaten: the engines' table has it."""
    said = f"≥ {bar:g} ×"
    did = {name: each for name, each in rivals.items() if each.measured and (unit != "s" or talked(each))}
    if (missing := _missing(work, label, said, (OURS, ours))) is not None:
        return missing
    if not did:
        return _missing(work, label, said, (LLAMA_CPP, rivals[LLAMA_CPP])) or Row(
            work, label, "–", "–", None, said, "not measured: no rival did it"
        )
    found = {name: find(each) for name, each in did.items()}
    name = min(found, key=found.__getitem__) if unit == "s" else max(found, key=found.__getitem__)
    mine, others = find(ours), found[name]
    ratio = others / mine if unit == "s" else mine / others
    shown = [f"{value:,.3f} s" if unit == "s" else f"{value:,.1f} {unit}" for value in (mine, others)]
    return Row(work, label, shown[0], f"{name}: {shown[1]}", ratio, said, verdict(1 - ratio / bar))


def talked(figures: Figures) -> bool:
    """True if the engine held the conversation too: some give whole answers alone."""
    return all("conversation" in each for each in figures.rounds)


def _of_bandwidth(label: str, ours: Figures, memory: Figures, bar: float) -> Row:
    work, said = "decode, of the memory's speed", f"≥ {bar:g} ×"
    if (missing := _missing(work, label, said, (OURS, ours), (BANDWIDTH, memory))) is not None:
        return missing
    allowed = median(memory.bandwidth()) / cast("int", ours.facts["disk_bytes"])
    mine = median(ours.decode())
    beside = f"bandwidth ÷ bytes: {allowed:,.1f} tok/s"
    return Row(work, label, f"{mine:,.1f} tok/s", beside, mine / allowed, said, verdict(1 - mine / allowed / bar))


def _resident(label: str, ours: Figures) -> Row:
    work, said = "resident, of the file", "≤ 1.05 ×"
    if (missing := _missing(work, label, said, (OURS, ours))) is not None:
        return missing
    held, stored = (cast("int", ours.facts[name]) for name in ("weight_bytes", "disk_bytes"))
    beside = f"the file: {stored / 1e6:,.0f} MB"
    return Row(work, label, f"{held / 1e6:,.0f} MB", beside, held / stored, said, verdict(held / stored / 1.05 - 1))
