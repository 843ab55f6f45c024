"""Time and score the real Gemma 3 270M in every way to store its weights, on real text, in one run.

    make bench-real                   beside llama.cpp, where it has an environment; three rounds
    make bench-real ARGS="--quick"            one round
    make bench-real ARGS="--rivals none"      only this package

Needs the file that ``scripts/real`` puts together. The table goes to benchmarks/figures.md with ``--write-docs``.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.command import empty_run, parse, publish, set_up, status
from benchmarks.running.contenders import PATIENT, ROOT, Contender, in_turn, rivals_of
from benchmarks.running.figures import LLAMA_CPP, Figures, Run
from benchmarks.running.machine import Others
from benchmarks.running.page import REAL
from benchmarks.running.report import bullets, busy, machine_and_versions, sections, table
from benchmarks.running.serve import Job
from benchmarks.work.workload import LONG_PROMPT, PROMPT

TEXT = ROOT / "LICENSE"  # some two thousand tokens of English that never change
FOLDER = ROOT / "build" / "real"
FILE = "gemma-3-270m-Q4_K_M.gguf"
WAYS = ("float32", "bfloat16", "int8", "int4", "Q8_0", "Q4_K_M")
ON_LLAMA = {"Q8_0": "gemma-3-270m-Q8_0.gguf", "Q4_K_M": FILE}
CONTENDER = Contender("ours", "benchmarks.files.ours_real", **PATIENT)
RIVAL = Contender(LLAMA_CPP, "benchmarks.rivals.llama_real", "llama", **PATIENT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if there is no such file, or a way of ours could not be measured."""
    options = parse(arguments, "files/real", (__doc__ or "").partition("\n")[0], rivals_of([RIVAL]))
    if not (FOLDER / FILE).exists():
        print(
            f"The real weights are not here ({FOLDER / FILE}): scripts/real --fetch puts them there.", file=sys.stderr
        )
        return 1
    set_up(options)
    run = empty_run(options)
    fill(run, options.rounds, options.threads, options.rivals)
    text = markdown(run)
    publish(text, REAL, options, run=run)
    return status(run, WAYS, (CONTENDER.name,))


def fill(run: Run, rounds: int, threads: int, chosen: Sequence[str]) -> None:
    """One way to store the weights after the other; of each, our rounds and llama.cpp's take turns."""
    began, others = time.monotonic(), Others()
    shutil.rmtree(FOLDER / "cache" / "recipes", ignore_errors=True)  # this machine is probed anew
    prompt = made_files()
    for way in WAYS:
        job = Job("bfloat16", threads, str(FOLDER), way, str(prompt), keeps_programs=True)
        found = in_turn([CONTENDER], job, rounds)
        if way in ON_LLAMA and "llama" in chosen:
            found |= in_turn([RIVAL], replace(job, model=ON_LLAMA[way]), rounds)
        run.engines[way] = found
    run.seconds, run.others = time.monotonic() - began, others.cores_used()


def made_files() -> Path:
    """Make what is made of the file, and the ids of the text; give the file with these."""
    from benchmarks.files.real_files import dense_folder, q8_0_file
    from langchain_gemma_jax.models.loading.load import load

    prompt = FOLDER / "text.json"
    with load(FOLDER / FILE, progress=False) as model:
        for dtype in ("float32", "bfloat16"):
            dense_folder(model, dtype)
        ids = [model.tokenizer.bos_id, *model.tokenizer.encode_text(TEXT.read_text())]
    prompt.write_text(json.dumps(ids))
    q8_0_file()
    return prompt


def markdown(run: Run) -> str:
    """The table, and what it was measured with."""
    names = [CONTENDER.name, LLAMA_CPP]
    return sections(busy(run), _ours(run), _rivals(run), bullets(machine_and_versions(run, names, WAYS)))


def _ours(run: Run) -> str:
    body, dense = [], run.of(CONTENDER.name, "float32")
    for way in WAYS:
        figures = run.of(CONTENDER.name, way)
        if not figures.measured:
            body.append([way, *["–"] * 7, f"{figures.problem}"])
            continue
        facts = figures.facts
        alike = "–" if way == "float32" or not dense.measured else f"{_agreement(dense.facts, facts):.1%}"
        sizes = [f"{cast('int', facts[name]) / 1e6:,.0f} MB" for name in ("disk_bytes", "weight_bytes")]
        speeds = [f"{median(each):,.0f}" for each in (figures.prefill(PROMPT), figures.prefill(LONG_PROMPT))]
        talks = [f"{_seconds(figures, name):.1f} s" for name in ("conversation", "drafted")]
        body.append(
            [way, *sizes, f"{facts['loss']:.4f}", alike, *speeds, f"{median(figures.decode()):.1f}", " / ".join(talks)]
        )
    header = ["weights", "on disk", "resident", "mean loss", "same token", f"prefill of {PROMPT}", f"of {LONG_PROMPT}"]
    return table([*header, "decode", "ten turns / with drafts"], body)


def _rivals(run: Run) -> str:
    body = []
    for way in ON_LLAMA:
        ours, theirs = run.of(CONTENDER.name, way), run.of(LLAMA_CPP, way)
        if not theirs.measured:
            continue
        speeds = [f"{median(each):,.1f}" for each in (theirs.prefill(LONG_PROMPT), theirs.decode())]
        ratio = f"{median(ours.decode()) / median(theirs.decode()):.2f} ×" if ours.measured else "–"
        body.append([way, *speeds, f"{_seconds(theirs, 'conversation'):.1f} s", ratio])
    header = ["llama.cpp on the same file", f"prefill of {LONG_PROMPT}", "decode", "ten turns", "our decode beside it"]
    return table(header, body) if body else ""


def _agreement(dense: Mapping[str, object], packed: Mapping[str, object]) -> float:
    """The share of a page's places at which two models would go on with the same token."""
    theirs, ours = cast("Sequence[int]", dense["best"]), cast("Sequence[int]", packed["best"])
    return sum(one == other for one, other in zip(theirs, ours, strict=True)) / len(ours)


def _seconds(figures: Figures, name: str) -> float:
    """The median of all rounds of what a conversation took."""
    whole = (cast("Mapping[str, Sequence[float]]", each[name])["whole"] for each in figures.rounds)
    return median(sum(turns) for turns in whole)


if __name__ == "__main__":
    sys.exit(main())
