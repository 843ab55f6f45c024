"""Time the forward pass beside the reference libraries, on the same random weights, in one run.

    make bench-forward                          whichever libraries have an environment; three rounds
    make bench-forward ARGS="--setup"           make the missing environments first (large downloads)
    make bench-forward ARGS="--quick"           one round
    make bench-forward ARGS="--rivals none"     only this package

benchmarks/README.md says what is measured, and how.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import DEEP_DTYPE, DEEP_MODEL, rows
from benchmarks.running.command import run_all
from benchmarks.running.contenders import Contender, measure, noting, prepare, rivals_of, say, start
from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, Run
from benchmarks.running.page import FORWARD
from benchmarks.running.report import markdown
from benchmarks.running.serve import Job
from benchmarks.work.workload import MODEL

CONTENDERS = (
    Contender(BANDWIDTH, "benchmarks.forward.bandwidth"),
    Contender(OURS, "benchmarks.forward.ours"),
    Contender(TRANSFORMERS, "benchmarks.rivals.hf", "hf"),
    Contender(LLAMA_CPP, "benchmarks.rivals.llama", "llama"),
    Contender(OFFICIAL, "benchmarks.rivals.official", "gemma"),
)
RIVALS = rivals_of(CONTENDERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if this package could not be measured."""
    return run_all(arguments, "forward/forward", __doc__.partition("\n")[0], RIVALS, fill, markdown, FORWARD, rows)


def fill(run: Run, options: Namespace) -> None:
    """Everything, in the order in which it disturbs itself least."""
    folder = prepare()
    for dtype in options.dtypes:
        run.engines[dtype] = measure(
            CONTENDERS, options.rivals, Job(dtype, options.threads, str(folder)), options.rounds
        )
    for model, dtype in (*((MODEL, dtype) for dtype in options.dtypes), (DEEP_MODEL, DEEP_DTYPE)):
        job = Job(dtype, options.threads, str(folder), model)
        run.compilations.setdefault(model, {})[dtype] = compilation(job)


def compilation(job: Job) -> Figures:
    """Our cold compilation of one model, in a process of its own."""
    say(f"compiling {job.model}, {job.dtype}")
    found = Figures()
    with noting(found), start(Contender("compile", "benchmarks.forward.compile_time"), job) as process:
        found.facts = process.facts
        found.rounds.append(process.round())
    return found


if __name__ == "__main__":
    sys.exit(main())
