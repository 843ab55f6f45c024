"""Measure three complaints on one file beside others: memory of weights, what a tool's result costs, a long context.

    python benchmarks/complaints/complaints.py                 beside transformers and llama.cpp, if they are set up
    python benchmarks/complaints/complaints.py --write-docs    ... and write benchmarks/figures.md

Needs the file that ``scripts/real`` puts together. Engines take turns, each in a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.complaints.complaints_work import LONG, RESULT, TOLD
from benchmarks.files.real import FILE, FOLDER, TEXT
from benchmarks.running.command import empty_run, parse, publish, set_up, status
from benchmarks.running.contenders import PATIENT, Contender, measure, rivals_of
from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures, Run
from benchmarks.running.machine import Others
from benchmarks.running.page import Block
from benchmarks.running.report import bullets, busy, machine_and_versions, sections, table
from benchmarks.running.serve import Job

BLOCK = Block("figures beside others", "benchmarks/complaints/complaints.py")
DTYPE = "bfloat16"  # what transformers makes of the file's blocks
CONTENDERS = (
    Contender(OURS, "benchmarks.complaints.ours_complaints", **PATIENT),
    Contender(TRANSFORMERS, "benchmarks.rivals.hf_complaints", "hf", **PATIENT),
    Contender(LLAMA_CPP, "benchmarks.rivals.llama_complaints", "llama", **PATIENT),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if there is no such file, or ours could not be measured."""
    options = parse(arguments, "complaints/complaints", (__doc__ or "").partition("\n")[0], rivals_of(CONTENDERS))
    if not (FOLDER / FILE).exists():
        print(
            f"The real weights are not here ({FOLDER / FILE}): scripts/real --fetch puts them there.", file=sys.stderr
        )
        return 1
    set_up(options)
    run, others, began = empty_run(options), Others(), time.monotonic()
    job = Job(DTYPE, options.threads, str(FOLDER), FILE, str(written_text()), keeps_programs=True)
    run.engines[FILE] = measure(CONTENDERS, options.rivals, job, options.rounds)
    run.seconds, run.others = time.monotonic() - began, others.cores_used()
    text = markdown(run)
    publish(text, BLOCK, options, run=run)
    return status(run, [FILE])


def written_text() -> Path:
    """Return the file with the ids that all of them read: a page of English, again and again."""
    from langchain_gemma_jax.models.loading.load import load

    path = FOLDER / "long-text.json"
    with load(FOLDER / FILE, progress=False) as model:
        page = model.tokenizer.encode_text(TEXT.read_text())
        ids = [model.tokenizer.bos_id, *page * (LONG // len(page) + 1)]
    path.write_text(json.dumps(ids[:LONG]))
    return path


def markdown(run: Run) -> str:
    """The table, and what it was measured with."""
    header = [
        FILE,
        "memory once it is loaded",
        f"first token behind a tool's result of {RESULT} tokens, after {TOLD:,}",
        f"memory with a context of {LONG:,} tokens",
    ]
    names = [each.name for each in CONTENDERS]
    body = [[name, *_row(run.of(name, FILE))] for name in names]
    return sections(busy(run), table(header, body), bullets(machine_and_versions(run, names, [FILE])))


def _row(figures: Figures) -> list[str]:
    if not figures.measured:
        return ["–", "–", f"{figures.problem}"]
    seconds = median(cast("float", each["result_s"]) for each in figures.rounds)
    long = max(cast("int", each["long_bytes"]) for each in figures.rounds)
    return [f"{cast('int', figures.facts['loaded_bytes']) / 1e6:,.0f} MB", f"{seconds:.2f} s", f"{long / 1e6:,.0f} MB"]


if __name__ == "__main__":
    sys.exit(main())
