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
from benchmarks.work.long_context import LONG, RESULT, SAID, VERY_LONG
from benchmarks.work.page_loss import PAGE
from benchmarks.work.several import AT_ONCE, EACH, OBJECT
from benchmarks.work.workload import LONG_PROMPT, PROMPT

DENSE, FOUR_BITS = ("BF16", "F32"), ("Q4_0", "Q4_K_M")
TALK, LONG_WORK, TOGETHER, UNDER_GRAMMAR = "conversation", "long", "together", "object"  # that some engines alone do
LOSS_BAR = 1.005
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
    def far(self) -> bool:
        """True if it is measured on long contexts too: what is larger takes minutes for one."""
        return self.talks and self.size == "270M"

    @property
    def objects(self) -> bool:
        """True if it is measured under a grammar too: a rival takes minutes for an object."""
        return self.label == "270M Q8_0"

    @property
    def decode_bar(self) -> float:
        if self.kind in DENSE:
            return 1.0
        return 1.2 if self.size == "270M" else 1.1

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

    def faster(work: str, bar: float, find: Callable[[Figures], float], unit: str = "tok/s", by: str = "") -> Row:
        did = {name: each for name, each in rivals.items() if measured(each, by)}
        missing = _missing(
            work, label, f"≥ {bar:g} ×", (OURS, ours), *(() if did else ((LLAMA_CPP, rivals[LLAMA_CPP]),))
        )
        return missing or _beside(work, label, ours, did, bar, find, unit)

    yield faster("decode", file.decode_bar, lambda each: median(each.decode()))
    if file.bandwidth_bar is not None:
        yield _of_bandwidth(label, ours, memory, file.bandwidth_bar)
    for length in (PROMPT, LONG_PROMPT):
        yield faster(f"prefill of {length}", 1.0, partial(_prefill, length))
    if file.far:
        yield faster(f"prefill of {LONG:,}", 1.0, lambda each: LONG / long_seconds(each, "prompt"), by=LONG_WORK)
        behind = f"decode behind {VERY_LONG:,}"
        yield faster(behind, file.decode_bar, lambda each: 1 / long_seconds(each, "behind"), by=LONG_WORK)
        result = f"first token behind a result of {RESULT} and {SAID:,} before it"
        yield faster(result, 1.0, lambda each: long_seconds(each, "result"), "s", LONG_WORK)
        for count in AT_ONCE:
            yield faster(f"{count} at once", 1.0, partial(_together, count), by=TOGETHER)
    if file.objects:
        yield faster(f"{OBJECT} tokens under a grammar", 1.0, lambda each: 1 / object_seconds(each), by=UNDER_GRAMMAR)
    if file.talks:
        yield faster("ten turns", file.talk_bar, of.conversation_seconds, "s", TALK)
        yield faster(f"first token behind {min(NEW_TOKENS)} new ones", 1.0, _short_turn, "s", TALK)
        yield _loss(label, ours)
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
    """Compare with the best of the rivals that did this work. One that failed is not beaten: the other table has it."""
    said = f"≥ {bar:g} ×"
    if not rivals:
        return Row(work, label, "–", "–", None, said, "not measured: no rival did it")
    found = {name: find(each) for name, each in rivals.items()}
    name = min(found, key=found.__getitem__) if unit == "s" else max(found, key=found.__getitem__)
    mine, others = find(ours), found[name]
    ratio = others / mine if unit == "s" else mine / others
    shown = [f"{value:,.3f} s" if unit == "s" else f"{value:,.1f} {unit}" for value in (mine, others)]
    return Row(work, label, shown[0], f"{name}: {shown[1]}", ratio, said, verdict(1 - ratio / bar))


def measured(figures: Figures, work: str) -> bool:
    """True if the engine did this work, if one is named: some give whole answers alone, and hold no conversation."""
    return figures.measured and (not work or all(work in each for each in figures.rounds))


def long_seconds(figures: Figures, work: str) -> float:
    """The median of a work on long contexts."""
    return median(cast("Mapping[str, Mapping[str, float]]", each)[LONG_WORK][work] for each in figures.rounds)


def _together(count: int, figures: Figures) -> float:
    """Tokens a second of several conversations at once, their prompts' time included."""
    seconds = (cast("Mapping[str, Mapping[str, float]]", each)[TOGETHER][str(count)] for each in figures.rounds)
    return count * EACH / median(seconds)


def object_seconds(figures: Figures) -> float:
    """The median of a token under the grammar."""
    return median(cast("float", each[UNDER_GRAMMAR]) for each in figures.rounds)


def _loss(label: str, ours: Figures) -> Row:
    """The loss on a page beside that with the same weights and activations that are not rounded."""
    work, said = f"loss on {PAGE} tokens of text", f"≤ {LOSS_BAR:g} ×"
    if (missing := _missing(work, label, said, (OURS, ours))) is not None:
        return missing
    found = cast("float", ours.facts["page loss"])
    exact = cast("float", ours.facts.get("exact loss", found))
    ratio = found / exact
    return Row(work, label, f"{found:.4f}", f"exact: {exact:.4f}", ratio, said, verdict(ratio / LOSS_BAR - 1))


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
