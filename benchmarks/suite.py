"""Run the benchmarks one after the other, and show every bar in one table.

    make bench                                    what most bars are about: half an hour
    make bench BENCH=quick                        the most telling part, some four minutes
    make bench BENCH=full                         everything: more files, and float32 beside bfloat16
    make bench ARGS="--compare build/bench/results.json"   what became worse since that run
    make bench ARGS="--only engine,serving"       some of them
    make bench ARGS="--report 0.2.0"              the report of a release, in benchmarks/reports/0.2.0

Each benchmark is a program of its own; what it says goes to a file of ``build/bench/suite``. All bars go to
``build/bench/results.json``, with a picture beside it. Rivals without an environment are made one first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.running.bars import Row
from benchmarks.running.contenders import FOLDER, ROOT, say
from benchmarks.running.earlier_run import is_worse, moved, the_same_bar
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import WINS, replace_block
from benchmarks.running.release_report import ReportError, release_numbers, reported, write_report
from benchmarks.running.report import bars_table, bullets, sections
from benchmarks.running.suite_plot import draw
from benchmarks.running.who_wins import who_wins

PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS, PLOT = FOLDER / "results.json", FOLDER / "results.svg"
LONGEST_S = 3600.0  # of one benchmark, after which it is ended and its bars are missing
REPORTS = ROOT / "benchmarks" / "reports"


@dataclass(frozen=True)
class Part:
    """A benchmark: its program, and its options in runs of three sizes.

    A quick run may leave it out. ``full`` is None where there is no more than the usual.
    """

    program: str
    usual: tuple[str, ...]
    quick: tuple[str, ...] | None = None
    full: tuple[str, ...] | None = None

    def options(self, size: str) -> tuple[str, ...] | None:
        """The options in a run of this size; None if it leaves the benchmark out."""
        return {"quick": self.quick, "usual": self.usual, "full": self.full or self.usual}[size]


PARTS: Mapping[str, Part] = {
    "files": Part(
        "files/same_file.py",
        ("--quick", "--files", "270M Q8_0,270M Q4_0,270M Q4_K_M"),
        ("--quick", "--files", "270M Q4_K_M", "--rivals", "llama"),
        ("--quick",),
    ),
    "forward": Part("forward/forward.py", ("--quick", "--dtype", "bfloat16"), full=("--quick",)),
    "engine": Part("engine/engine.py", ("--quick", "--dtype", "bfloat16"), full=("--quick",)),
    "cold start": Part(
        "start/cold_start.py", ("--rounds", "2"), ("--rounds", "2", "--models", "sprout-m"), ("--rounds", "3")
    ),
    "growing turns": Part("start/growing.py", ("--rivals", "llama"), ("--rivals", "llama")),
    "constrained": Part("engine/constrained.py", ("--rounds", "3"), ("--rounds", "1")),
    "routing": Part("memory/routing.py", ("--steps", "20")),
    "memory": Part("memory/memory.py", ("--rounds", "3", "--models", "gemma-3-270m")),
    "serving": Part(
        "serving/serving.py",
        ("--rounds", "3", "--tokens", "400", "--requests", "400"),
        ("--rounds", "2", "--tokens", "200", "--requests", "100", "--clients", "16"),
    ),
}


@dataclass(frozen=True)
class Found:
    """The bars that one benchmark gave, or why there are none."""

    rows: tuple[Row, ...]
    seconds: float
    problem: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)  # of the engines that ran


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; the exit status is 1 if one gave no bars, or if one is worse than in the run before."""
    options = parsed(arguments)
    before = None if options.compare is None else json.loads(options.compare.read_text())
    if options.setup:
        subprocess.run([ROOT / "scripts" / "rivals"], check=False)
    began, others = time.monotonic(), Others()
    found = {name: run(name, PARTS[name], size=options.size) for name in options.only}
    others_used = others.cores_used()
    text = report(found, time.monotonic() - began, others_used)
    worse = [] if before is None else regressions(before, found)
    print(sections(text, bullets(worse)))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    content = as_json(found, others_used)
    options.json.write_text(json.dumps(content, indent=2) + "\n")
    PLOT.write_text(
        draw([(f"{name}: {row.work}, {row.dtype}", row) for name, part in found.items() for row in part.rows])
    )
    if options.report is not None:
        raw = [path for name in found if (path := FOLDER / "suite" / f"{name}.json").exists()]
        page = write_report(REPORTS, options.report, content, raw)
        PAGE.write_text(replace_block(PAGE.read_text(), who_wins(reported(page.parent)), WINS))
        say(f"the report is {page}; python scripts/diagrams.py draws its picture")
    return 1 if worse or any(part.problem for part in found.values()) else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="benchmarks/suite.py", description=(__doc__ or "").partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    for name, what in (("quick", "only what takes some four minutes"), ("full", "everything: about an hour")):
        size.add_argument(f"--{name}", action="store_const", const=name, dest="size", default="usual", help=what)
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--setup", action="store_true", help="make the missing environments of the rivals first")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="the results of an earlier run")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", default=RESULTS, help=f"by default {RESULTS.relative_to(ROOT)}"
    )
    parser.add_argument(
        "--report",
        metavar="VERSION",
        help=f"write a release's report into {REPORTS.relative_to(ROOT)}/VERSION, and {PAGE.relative_to(ROOT)}",
    )
    options = parser.parse_args(arguments)
    able = [name for name, part in PARTS.items() if part.options(options.size) is not None]
    chosen = able if options.only is None else [name.strip() for name in options.only.split(",")]
    if unknown := [name for name in chosen if name not in able]:
        parser.error(f"--only: expected some of {', '.join(able)}, found {', '.join(unknown)}")
    if options.compare is not None and not options.compare.exists():
        parser.error(f"--compare: expected the results of an earlier run, found no file {options.compare}")
    if options.report is not None:
        try:
            release_numbers(options.report)
        except ReportError as error:
            parser.error(f"--report: {error}")
    options.only = chosen
    return options


def run(name: str, part: Part, *, size: str) -> Found:
    """Run one benchmark. One that fails or takes too long says so in the report, and the others go on."""
    folder = FOLDER / "suite"
    folder.mkdir(parents=True, exist_ok=True)
    log, results = folder / f"{name}.txt", folder / f"{name}.json"
    results.unlink(missing_ok=True)
    options = part.options(size) or ()
    say(f"{name}: {part.program} {' '.join(options)}")
    began = time.monotonic()
    with log.open("wb") as said:
        try:
            subprocess.run(
                [sys.executable, ROOT / "benchmarks" / part.program, *options, "--json", results],
                cwd=ROOT,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"it was ended after {LONGEST_S:.0f} seconds"
        else:
            problem = "it failed"
    took = time.monotonic() - began
    if not results.exists():
        return Found((), took, f"{problem}: {log.relative_to(ROOT)} has what it said")
    content = json.loads(results.read_text())
    return Found(tuple(Row(**each) for each in content["bars"]), took, versions=versions_in(content))


def versions_in(content: Mapping[str, Any]) -> Mapping[str, str]:
    """The versions of the engines in the results of a benchmark, where it says them."""
    return {
        name: str(figures["facts"]["version"])
        for engines in content.get("engines", {}).values()
        for name, figures in engines.items()
        if "version" in figures.get("facts", {})
    }


def report(found: Mapping[str, Found], seconds: float, others: float | None) -> str:
    """The table of all bars, and what it was measured with."""
    facts, used = machine(), "an unknown number of" if others is None else f"{others:.2f}"
    rows = [row for part in found.values() for row in part.rows]
    reached = sum(row.verdict.startswith("reached") for row in rows)
    where = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}, {time.strftime('%Y-%m-%d')}"
    head = f"{reached} of {len(rows)} bars reached. {where}."
    took = ", ".join(f"{name} {part.seconds:.0f} s" for name, part in found.items())
    failed = [f"{name}: {part.problem}" for name, part in found.items() if part.problem]
    busy = f"Others used {used} cores meanwhile."
    return sections(head, bars_table(rows), bullets([f"{seconds / 60:.1f} minutes: {took}. {busy}", *failed]))


def as_json(found: Mapping[str, Found], others: float | None) -> Mapping[str, object]:
    """The results as a later run's ``--compare`` reads them."""
    parts = {
        name: {"seconds": part.seconds, "problem": part.problem, "bars": [vars(row) for row in part.rows]}
        for name, part in found.items()
    }
    versions = {name: version for part in found.values() for name, version in part.versions.items()}
    made = time.strftime("%Y-%m-%d")
    return {"machine": machine(), "made": made, "others": others, "versions": versions, "parts": parts}


def regressions(
    before: Mapping[str, Mapping[str, Mapping[str, list[Mapping[str, object]]]]], found: Mapping[str, Found]
) -> list[str]:
    """The bars that became worse: ratios by more than rounds differ by, and bars that were reached and are missed."""
    worse = []
    for name, part in found.items():
        then = before["parts"].get(name, {"bars": []})["bars"]
        for row in part.rows:
            old = the_same_bar(then, row)
            if old is not None and is_worse(old, row):
                worse.append(f"**worse**: {moved(old, row)}")
    return worse


if __name__ == "__main__":
    sys.exit(main())
