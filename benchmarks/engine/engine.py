"""Time the engine in an agent's conversation, beside transformers and llama.cpp, on the same weights, in one run.

    python benchmarks/engine/engine.py                   whichever libraries have an environment; three rounds
    python benchmarks/engine/engine.py --quick           one round
    python benchmarks/engine/engine.py --rivals none     only this package

benchmarks/README.md says what is measured, and how.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.engine.engine_bars import rows
from benchmarks.engine.engine_report import markdown
from benchmarks.running.command import run_all
from benchmarks.running.contenders import PATIENT, Contender, measure, prepare, rivals_of
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Run
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
    return run_all(arguments, "engine/engine", __doc__.partition("\n")[0], RIVALS, fill, markdown, ENGINE, rows)


def fill(run: Run, options: Namespace) -> None:
    """All rounds in one dtype, then in the other."""
    folder = prepare()
    for dtype in options.dtypes:
        job = Job(dtype, options.threads, str(folder))
        write_tokenizer(job.checkpoint)
        run.engines[dtype] = measure(CONTENDERS, options.rivals, job, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
