"""The report of a run, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import cast

from benchmarks.running.bars import Row, rows
from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, Run, agreeing
from benchmarks.work.workload import DTYPES, LONG_PROMPT, PROMPT

ENGINES = (OURS, TRANSFORMERS, LLAMA_CPP, OFFICIAL)
BUSY = 0.1  # cores: a machine at rest uses less


def markdown(run: Run) -> str:
    """The bars, every engine's figures, and what they were measured with."""
    return sections(busy(run), bars_table(rows(run)), _engines(run), bullets(_facts(run)))


def sections(*parts: str) -> str:
    """The parts that have anything in them, one below the other."""
    return "\n\n".join(part for part in parts if part) + "\n"


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {line}" for line in lines)


def table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar in a cell is kept from ending it."""
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )


def busy(run: Run) -> str:
    """A warning above the figures, if others used the machine."""
    others = run.others
    if others is None or others <= BUSY:
        return ""
    used = f"others used {others:.1f} of its {run.machine['cores']} cores"
    return f"**The machine was busy**: {used}. The ratios are rough, and so are the verdicts."


def bars_table(bars: Iterable[Row]) -> str:
    """Every bar, with what was reached and what was missed."""
    return table(
        ["work", "weights", "ours", "beside", "ratio", "bar", ""],
        [
            [
                row.work,
                row.dtype,
                row.ours,
                row.beside,
                "–" if row.ratio is None else f"{row.ratio:.2f} ×",
                row.bar,
                row.verdict,
            ]
            for row in bars
        ],
    )


def _engines(run: Run) -> str:
    body = []
    for dtype in run.dtypes:
        for name in ENGINES:
            figures = run.of(name, dtype)
            if figures.measured:
                speeds = [_both(figures.prefill(PROMPT)), _both(figures.prefill(LONG_PROMPT)), _both(figures.decode())]
                body.append([name, dtype, *speeds, _agreement(run, name, dtype)])
            else:
                body.append([name, dtype, "–", "–", "–", f"{figures.problem}"])
    header = ["tokens a second, median (best)", "weights", f"prefill of {PROMPT}", f"of {LONG_PROMPT}", "decode"]
    return table([*header, "tokens as ours"], body)


def _both(samples: Sequence[float]) -> str:
    return f"{median(samples):,.1f} ({max(samples):,.1f})" if samples else "–"


def _agreement(run: Run, name: str, dtype: str) -> str:
    """Say how many decoded tokens are ours, in float32 alone: in bfloat16 rounding decides among them."""
    ours, theirs = run.of(OURS, dtype), run.of(name, dtype)
    if name == OURS or dtype != "float32" or not ours.measured:
        return "–"
    return f"{agreeing(ours.tokens(), theirs.tokens())} of {len(ours.tokens())}"


def machine_and_versions(run: Run, engines: Sequence[str], dtypes: Sequence[str] = DTYPES) -> Iterator[str]:
    """Say what it ran on and with."""
    machine, settings = run.machine, run.settings
    memory = cast("int", machine["memory_bytes"]) / 2**30
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {memory:.0f} GiB, {machine['system']}, "
        f"Python {machine['python']}; {settings['date']}, {settings['threads']} threads, rounds: {settings['rounds']}, "
        f"{run.seconds / 60:.1f} minutes"
    )
    for name in engines:
        facts = [run.of(name, dtype).facts for dtype in dtypes]
        versions = [str(each["version"]) for each in facts if "version" in each]
        if versions:
            yield f"{name}: {versions[0]}"


def _facts(run: Run) -> Iterator[str]:
    yield from machine_and_versions(run, ENGINES)
    for dtype in run.dtypes:
        yield from _memory(run.of(BANDWIDTH, dtype), run.of(OURS, dtype), dtype)
    for dtype in run.dtypes:
        if "recipe" in (facts_of := run.of(OURS, dtype).facts):
            yield f"recipe for {dtype}: {facts_of['recipe']}"
    for model, by_dtype in run.compilations.items():
        for dtype, figures in by_dtype.items():
            if figures.measured:
                each = ", ".join(f"{program} {seconds:.1f} s" for program, seconds in figures.rounds[0].items())
                yield f"compiled cold, {model}, {dtype}: {each}"


def _memory(memory: Figures, ours: Figures, dtype: str) -> Iterator[str]:
    if not memory.measured:
        yield f"read bandwidth: not measured: {memory.problem}"
        return
    ways = {way: max(cast("float", each[way]) for each in memory.rounds) for way in memory.rounds[0]}
    best = ", ".join(f"{way} {speed / 1e9:.1f}" for way, speed in ways.items())
    weights = f"; {cast('int', ours.facts['weight_bytes']) / 1e9:.3f} GB of weights" if ours.measured else ""
    yield f"read bandwidth beside {dtype}, median {median(memory.bandwidth()) / 1e9:.1f} GB/s (best: {best}){weights}"
