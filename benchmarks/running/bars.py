"""The bars that we hold ourselves to, and how far each was reached. No row is ever left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import cast

from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, Run
from benchmarks.work.workload import LONG_PROMPT, MODEL, PROMPT

DEEP_MODEL, DEEP_DTYPE = "gemma-3-27b", "bfloat16"
LAYERS = {MODEL: 18, DEEP_MODEL: 62}

OF_FLOOR = 0.8
DECODE_BARS = {TRANSFORMERS: 2.0, OFFICIAL: 5.0, LLAMA_CPP: 1.0}
PREFILL_BAR, PREFILL_RIVALS = 1.0, (TRANSFORMERS, LLAMA_CPP)
COMPILE_SECONDS = {MODEL: 6.0, DEEP_MODEL: 60.0}


@dataclass(frozen=True)
class Row:
    """One bar: what was measured, beside what, and what was asked for."""

    work: str
    dtype: str
    ours: str
    beside: str
    ratio: float | None
    bar: str
    verdict: str


@dataclass(frozen=True)
class Speed:
    """Tokens a second of one engine, or why there are none."""

    name: str
    value: float | None
    problem: str | None = None


def rows(run: Run) -> list[Row]:
    """Every bar, in the order of the report."""
    return [*_decode(run), *_prefill(run), *_compile(run)]


def _decode(run: Run) -> Iterator[Row]:
    for dtype in run.dtypes:
        ours = _speed(run, OURS, dtype)
        yield _row("decode", dtype, ours, _floor(run, dtype), OF_FLOOR)
        for name, bar in DECODE_BARS.items():
            yield _row("decode", dtype, ours, _speed(run, name, dtype), bar)


def _prefill(run: Run) -> Iterator[Row]:
    for dtype in run.dtypes:
        for length in (PROMPT, LONG_PROMPT):
            ours = _speed(run, OURS, dtype, length)
            rivals = [_speed(run, name, dtype, length) for name in PREFILL_RIVALS]
            yield _row(f"prefill of {length}", dtype, ours, _best(rivals), PREFILL_BAR, _without(rivals))


def _compile(run: Run) -> Iterator[Row]:
    for model, dtypes in ((MODEL, run.dtypes), (DEEP_MODEL, (DEEP_DTYPE,))):
        for dtype in dtypes:
            figures, bar = run.compilation(model, dtype), COMPILE_SECONDS[model]
            ours = figures.compile_seconds() if figures.measured else None
            official = run.of(OFFICIAL, dtype).facts.get("compile") if model == MODEL else None
            theirs = cast("float | None", official)
            yield Row(
                work=f"compile, {LAYERS[model]} layers",
                dtype=dtype,
                ours="–" if ours is None else f"{ours:.1f} s",
                beside="–" if theirs is None else f"{OFFICIAL}: {theirs:.1f} s",
                ratio=None if ours is None or theirs is None else theirs / ours,
                bar=f"≤ {bar:g} s",
                verdict=f"not measured: {OURS}: {figures.problem}" if ours is None else verdict(ours / bar - 1),
            )


def _speed(run: Run, name: str, dtype: str, prompt: int | None = None) -> Speed:
    figures = run.of(name, dtype)
    return Speed(name, _median(figures, prompt) if figures.measured else None, figures.problem)


def _median(figures: Figures, prompt: int | None) -> float:
    return median(figures.decode() if prompt is None else figures.prefill(prompt))


def _floor(run: Run, dtype: str) -> Speed:
    """Return the tokens a second that reading every weight once a token would allow."""
    name, ours, memory = "bandwidth ÷ bytes", run.of(OURS, dtype), run.of(BANDWIDTH, dtype)
    if not ours.measured or not memory.measured:
        return Speed(name, None, memory.problem or ours.problem)
    return Speed(name, median(memory.bandwidth()) / cast("int", ours.facts["weight_bytes"]))


def _best(rivals: Sequence[Speed]) -> Speed:
    present = [rival for rival in rivals if rival.value is not None]
    if not present:
        return Speed(" and ".join(rival.name for rival in rivals), None, rivals[0].problem)
    return max(present, key=lambda rival: rival.value or 0.0)


def _without(rivals: Sequence[Speed]) -> str:
    missing = [rival.name for rival in rivals if rival.value is None]
    return f" (without {' and '.join(missing)})" if missing and len(missing) < len(rivals) else ""


def _row(work: str, dtype: str, ours: Speed, beside: Speed, bar: float, remark: str = "") -> Row:
    if ours.value is None:
        ratio, said = None, f"not measured: {ours.name}: {ours.problem}"
    elif beside.value is None:
        ratio, said = None, f"not measured: {beside.name}: {beside.problem}"
    else:
        ratio = ours.value / beside.value
        said = verdict(1 - ratio / bar) + remark
    return Row(
        work=work,
        dtype=dtype,
        ours="–" if ours.value is None else f"{ours.value:,.1f} tok/s",
        beside=beside.name if beside.value is None else f"{beside.name}: {beside.value:,.1f} tok/s",
        ratio=ratio,
        bar=f"≥ {bar:g} ×",
        verdict=said,
    )


def verdict(short: float) -> str:
    """``short``: the share of the bar that is missing; none or less of it is reached."""
    return "reached" if short <= 0 else f"**missed** by {max(1, round(100 * short))} %"
