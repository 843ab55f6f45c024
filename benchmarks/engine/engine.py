"""Time the engine in an agent's conversation, beside transformers and llama.cpp, on the same weights, in one run.

    python benchmarks/engine/engine.py                   whichever libraries have an environment; three rounds
    python benchmarks/engine/engine.py --quick           one round
    python benchmarks/engine/engine.py --rivals none     only this package

benchmarks/README.md says what is measured, and how.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.engine.engine_bars import rows
from benchmarks.engine.engine_report import markdown
from benchmarks.running.command import empty_run, parse, publish, set_up, status
from benchmarks.running.contenders import PATIENT, Contender, measure, prepare, rivals_of
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Run
from benchmarks.running.machine import Others
from benchmarks.running.page import ENGINE
from benchmarks.running.serve import Job
from benchmarks.work.vocabulary import write_tokenizer

CONTENDERS = (
    Contender(OURS, "benchmarks.engine.ours_engine", **PATIENT),
    Contender(TRANSFORMERS, "benchmarks.rivals.hf_conversation", "hf", **PATIENT),
    Contender(LLAMA_CPP, "benchmarks.rivals.llama_conversation", "llama", **PATIENT),
)
RIVALS = rivals_of(CONTENDERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if this package could not be measured."""
    options = parse(arguments, "engine/engine", __doc__.partition("\n")[0], RIVALS, dtypes=True)
    set_up(options)
    run = empty_run(options)
    fill(run, options.rounds, options.threads, options.rivals, options.dtypes)
    publish(markdown(run), ENGINE, options, run=run, bars=rows(run))
    return status(run, options.dtypes)


def fill(run: Run, rounds: int, threads: int, chosen: Sequence[str], dtypes: Sequence[str]) -> None:
    """All rounds in one dtype, then in the other."""
    began, others = time.monotonic(), Others()
    folder = prepare()
    for dtype in dtypes:
        job = Job(dtype, threads, str(folder))
        write_tokenizer(job.checkpoint)
        run.engines[dtype] = measure(CONTENDERS, chosen, job, rounds)
    run.seconds, run.others = time.monotonic() - began, others.cores_used()


if __name__ == "__main__":
    sys.exit(main())
