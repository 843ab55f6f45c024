"""The command line that benchmarks share: their options, and what is done with a run once it is measured."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.running.bars import Row
from benchmarks.running.contenders import ROOT
from benchmarks.running.figures import OURS, Run
from benchmarks.running.machine import Others, cores, machine
from benchmarks.running.page import Block, replace_block
from benchmarks.work.workload import DTYPES

PAGE = ROOT / "benchmarks" / "figures.md"
ROUNDS = 3


def parse(
    arguments: Sequence[str] | None,
    program: str,
    description: str,
    rivals: Mapping[str, str],
    *,
    files: bool = False,
    dtypes: bool = False,
) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(prog=f"benchmarks/{program}.py", description=description)
    parser.add_argument("--setup", action="store_true", help="make the missing environments of the rivals first")
    parser.add_argument("--quick", action="store_const", const=1, dest="rounds", default=ROUNDS, help="one round")
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help=f"of every engine in turn; {ROUNDS} by default")
    parser.add_argument("--threads", type=positive, default=cores(), help="by default as many as there are cores")
    parser.add_argument(
        "--rivals",
        type=some_of(rivals),
        default=tuple(rivals),
        help=f"{','.join(rivals)} (the default) or none",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--write-docs", action="store_true", help=f"renew the figures in {PAGE.relative_to(ROOT)}")
    if dtypes:
        parser.add_argument("--dtype", choices=DTYPES, help="only this one; by default all of them")
    if files:
        parser.add_argument(
            "--files",
            default="",
            metavar="TEXT",
            help="only those in whose name one of these is, with commas between them",
        )
    options = parser.parse_args(arguments)
    options.dtypes = (options.dtype,) if dtypes and options.dtype else DTYPES
    if options.threads > cores():
        parser.error(f"--threads: expected at most {cores()}, the cores that may be used, found {options.threads}")
    return options


def positive(text: str) -> int:
    """A count, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, found {value}")
    return value


def some_of(rivals: Mapping[str, str]) -> Callable[[str], tuple[str, ...]]:
    """Names of rivals' environments, for argparse."""

    def chosen(text: str) -> tuple[str, ...]:
        names = () if text == "none" else tuple(text.split(","))
        if unknown := set(names) - set(rivals):
            known = ", ".join(rivals)
            raise argparse.ArgumentTypeError(f"expected none or some of {known}, found {', '.join(sorted(unknown))}")
        return names

    return chosen


def set_up(options: argparse.Namespace) -> None:
    """Make the rivals' environments if that is asked for. What fails shows later, in the report."""
    if options.setup:
        subprocess.run([ROOT / "scripts" / "rivals"], check=False)


def empty_run(options: argparse.Namespace) -> Run:
    """A run that has measured nothing yet."""
    return Run(
        machine=machine(),
        settings={
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "rounds": options.rounds,
            "threads": options.threads,
            "rivals": list(options.rivals),
        },
    )


def run_all(
    arguments: Sequence[str] | None,
    program: str,
    description: str,
    rivals: Mapping[str, str],
    fill: Callable[[Run, argparse.Namespace], None],
    markdown: Callable[[Run], str],
    block: Block,
    rows: Callable[[Run], Sequence[Row]],
) -> int:
    """Run a benchmark in the dtypes that are asked for, and publish it; 1 if this package could not be measured."""
    options = parse(arguments, program, description, rivals, dtypes=True)
    set_up(options)
    run, others, began = empty_run(options), Others(), time.monotonic()
    fill(run, options)
    run.seconds, run.others = time.monotonic() - began, others.cores_used()
    publish(markdown(run), block, options, run=run, bars=rows(run))
    return status(run, options.dtypes)


def publish(
    text: str,
    block: Block,
    options: argparse.Namespace,
    *,
    run: Run | None = None,
    bars: Sequence[Row] = (),
) -> None:
    """Show a report, and write what is asked for: all that was measured, and the block of a page."""
    print(text)
    write_json(vars(options).get("json"), run, bars)
    if options.write_docs:
        PAGE.write_text(replace_block(PAGE.read_text(), text, block))


def status(run: Run, labels: Iterable[str], names: Sequence[str] = (OURS,)) -> int:
    """Return the exit status: 1 if this package could not be measured."""
    return 0 if all(run.of(name, label).measured for label in labels for name in names) else 1


def write_json(path: Path | None, run: Run | None, bars: Sequence[Row]) -> None:
    """Write everything that was measured, and what became of each bar, if there is a file for it."""
    if path is not None:
        measured = {"machine": machine()} if run is None else run.to_json()
        path.write_text(json.dumps({**measured, "bars": [asdict(row) for row in bars]}, indent=2) + "\n")


def report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``publish``, where there is no run to be kept whole."""
    parser.add_argument("--write-docs", action="store_true", help=f"renew the figures in {PAGE.relative_to(ROOT)}")
    json_option(parser)


def json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the file of ``write_json``."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of each bar")
