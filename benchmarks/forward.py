"""Time the forward pass beside the reference libraries, on the same random weights, in one run.

    make bench                          whichever libraries have an environment; three rounds
    make bench ARGS="--setup"           make the missing environments first (large downloads)
    make bench ARGS="--quick"           one round
    make bench ARGS="--rivals none"     only this package

docs/benchmarks.md says what is measured, and how.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bars import DEEP_DTYPE, DEEP_MODEL
from benchmarks.checkpoint import ensure_checkpoints
from benchmarks.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, Run
from benchmarks.machine import Others, cores, machine
from benchmarks.page import replace_block
from benchmarks.process import EngineFailedError, EngineProcess
from benchmarks.report import markdown
from benchmarks.serve import Job
from benchmarks.workload import DTYPES, MODEL

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"
ROUNDS = 3


@dataclass(frozen=True)
class Contender:
    """An engine: the module that runs it, and the Python that has its libraries."""

    name: str
    module: str
    environment: str | None = None  # below .envs; None: this Python

    @property
    def python(self) -> Path:
        if self.environment is None:
            return Path(sys.executable)
        return ROOT / ".envs" / self.environment / "bin" / "python"


CONTENDERS = (
    Contender(BANDWIDTH, "benchmarks.bandwidth"),
    Contender(OURS, "benchmarks.ours"),
    Contender(TRANSFORMERS, "benchmarks.rivals.hf", "hf"),
    Contender(LLAMA_CPP, "benchmarks.rivals.llama", "llama"),
    Contender(OFFICIAL, "benchmarks.rivals.official", "gemma"),
)
RIVALS = {contender.environment: contender.name for contender in CONTENDERS if contender.environment is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if this package could not be measured."""
    options = parse(arguments)
    if options.setup:
        subprocess.run([ROOT / "scripts" / "rivals"], check=False)
    run = measure(options.rounds, options.threads, options.rivals)
    text = markdown(run)
    print(text)
    if options.json is not None:
        options.json.write_text(json.dumps(run.to_json(), indent=2) + "\n")
    if options.write_docs:
        PAGE.write_text(replace_block(PAGE.read_text(), text))
    return 0 if all(run.of(OURS, dtype).measured for dtype in DTYPES) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="benchmarks/forward.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--setup", action="store_true", help="make the missing environments of the rivals first")
    parser.add_argument("--quick", action="store_const", const=1, dest="rounds", default=ROUNDS, help="one round")
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help=f"of every engine in turn; {ROUNDS} by default")
    parser.add_argument("--threads", type=positive, default=cores(), help="by default as many as there are cores")
    parser.add_argument(
        "--rivals", type=rivals, default=tuple(RIVALS), help=f"{','.join(RIVALS)} (the default) or none"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--write-docs", action="store_true", help=f"renew the figures in {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.threads > cores():
        parser.error(f"--threads: expected at most {cores()}, the cores that may be used, found {options.threads}")
    return options


def positive(text: str) -> int:
    """A count, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, found {value}")
    return value


def rivals(text: str) -> tuple[str, ...]:
    """Names of rivals' environments, for argparse."""
    chosen = () if text == "none" else tuple(text.split(","))
    if unknown := set(chosen) - set(RIVALS):
        known = ", ".join(RIVALS)
        raise argparse.ArgumentTypeError(f"expected none or some of {known}, found {', '.join(sorted(unknown))}")
    return chosen


def measure(rounds: int, threads: int, chosen: Sequence[str]) -> Run:
    """Everything, in the order in which it disturbs itself least."""
    began, others = time.monotonic(), Others()
    run = Run(
        machine=machine(),
        settings={
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "rounds": rounds,
            "threads": threads,
            "rivals": list(chosen),
        },
    )
    say("making the checkpoints")
    folder = ensure_checkpoints(FOLDER)
    shutil.rmtree(folder / "cache", ignore_errors=True)  # so that recipes are of today
    contenders = [each for each in CONTENDERS if each.environment is None or each.environment in chosen]
    for dtype in DTYPES:
        run.engines[dtype] = in_turn(contenders, Job(dtype, threads, str(folder)), rounds)
        for each in CONTENDERS:
            run.engines[dtype].setdefault(each.name, Figures(problem="left out (--rivals)"))
    for model, dtype in (*((MODEL, dtype) for dtype in DTYPES), (DEEP_MODEL, DEEP_DTYPE)):
        job = Job(dtype, threads, str(folder), model)
        run.compilations.setdefault(model, {})[dtype] = compilation(job)
    run.seconds, run.others = time.monotonic() - began, others.cores_used()
    return run


def in_turn(contenders: Sequence[Contender], job: Job, rounds: int) -> dict[str, Figures]:
    """Start every engine, then run round after round of all of them. One that fails stops; the others go on."""
    found = {contender.name: Figures() for contender in contenders}
    running: dict[str, EngineProcess] = {}
    with ExitStack() as stack:
        for contender in contenders:
            say(f"{job.dtype}: starting {contender.name}")
            with noting(found[contender.name]):
                process = stack.enter_context(start(contender, job))
                running[contender.name], found[contender.name].facts = process, process.facts
        for number in range(rounds):
            say(f"{job.dtype}: round {number + 1} of {rounds}")
            for name, process in running.items():
                if found[name].problem is None:
                    with noting(found[name]):
                        found[name].rounds.append(process.round())
    return found


def compilation(job: Job) -> Figures:
    """Our cold compilation of one model, in a process of its own."""
    say(f"compiling {job.model}, {job.dtype}")
    found = Figures()
    with noting(found), start(Contender("compile", "benchmarks.compile_time"), job) as process:
        found.facts = process.facts
        found.rounds.append(process.round())
    return found


def start(contender: Contender, job: Job) -> EngineProcess:
    """The engine's process, ready for its first round."""
    if not contender.python.exists():
        raise EngineFailedError(f".envs/{contender.environment} is absent (--setup makes it)")
    log = FOLDER / "logs" / f"{contender.module}-{job.model}-{job.dtype}.log"
    return EngineProcess(contender.python, contender.module, job, log)


@contextmanager
def noting(figures: Figures) -> Iterator[None]:
    """An engine's failure is a result too."""
    try:
        yield
    except EngineFailedError as error:
        figures.problem = str(error)
        say(f"failed: {error}")


def say(text: str) -> None:
    """Tell whoever waits."""
    print(f"... {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
