"""Time this package and its rivals on the same files, in turns: a real 270M in five kinds of numbers, and larger ones.

    python benchmarks/files/same_file.py                     three rounds; larger ones have random weights
    python benchmarks/files/same_file.py --quick             one round
    python benchmarks/files/same_file.py --files 270M,1B     only those in whose name one of these is

Needs the file that ``scripts/real`` puts together, and 12 GB of disk for what is made of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.files import real, same_file_bars, same_file_rivals
from benchmarks.files.same_file_bars import File
from benchmarks.running.command import empty_run, parse, publish, set_up, status
from benchmarks.running.contenders import PATIENT, Contender, in_turn, rivals_of, say
from benchmarks.running.figures import (
    BANDWIDTH,
    IK,
    LITERT,
    LLAMA_AMX,
    LLAMA_CPP,
    MISTRAL_RS,
    OPENVINO,
    OURS,
    VLLM,
    Figures,
    Run,
)
from benchmarks.running.machine import Others
from benchmarks.running.page import SAME_FILE
from benchmarks.running.report import bars_table, bullets, busy, machine_and_versions, sections
from benchmarks.running.serve import Job

REQUANTIZED = ("Q2_K", "Q3_K_M", "IQ4_XS", "IQ2_XS")  # by llama.cpp's own quantizer
FILES = (
    File("270M", "Q8_0"),
    File("270M", "Q4_0"),
    File("270M", "Q4_K_M"),
    File("270M", "BF16"),
    File("270M", "F32"),
    *(File("270M", kind, talks=False) for kind in REQUANTIZED),
    File("1B", "Q8_0"),
    File("1B", "Q4_0"),
    File("1B", "BF16"),
    File("4B", "Q8_0", talks=False),
    File("4B", "Q4_0", talks=False),
)
CONTENDERS = (
    Contender(BANDWIDTH, "benchmarks.forward.bandwidth"),
    Contender(OURS, "benchmarks.files.ours_real", **PATIENT),
    Contender(LLAMA_CPP, "benchmarks.rivals.llama_real", "llama", **PATIENT),
    Contender(LLAMA_AMX, "benchmarks.rivals.llama_real", "llama-amx", **PATIENT),
    Contender(IK, "benchmarks.rivals.ik_real", "ik", **PATIENT),
    Contender(MISTRAL_RS, "benchmarks.rivals.mistralrs_real", "mistralrs", **PATIENT),
    Contender(OPENVINO, "benchmarks.rivals.openvino_real", "openvino", **PATIENT),
    Contender(LITERT, "benchmarks.rivals.litert_real", "litert", **PATIENT),
    Contender(VLLM, "benchmarks.rivals.vllm_real", "vllm", **PATIENT),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if there is no real file, or this package could not be measured."""
    options = parse(arguments, "files/same_file", (__doc__ or "").partition("\n")[0], rivals_of(CONTENDERS), files=True)
    chosen = chosen_files(options.files)
    if not chosen:
        print(f"--files: expected parts of {', '.join(file.label for file in FILES)}", file=sys.stderr)
        return 2
    if not (real.FOLDER / real.FILE).exists():
        print(
            f"The real weights are not here ({real.FOLDER / real.FILE}): scripts/real --fetch puts them there.",
            file=sys.stderr,
        )
        return 1
    set_up(options)
    run = empty_run(options)
    fill(run, chosen, options.rounds, options.threads, options.rivals)
    left_out = Figures(problem="left out (--rivals)")
    for engines in run.engines.values():
        for each in CONTENDERS:
            engines.setdefault(each.name, left_out)
    found = same_file_bars.rows(run, chosen)
    facts = bullets(machine_and_versions(run, [each.name for each in CONTENDERS], list(chosen)))
    text = sections(busy(run), bars_table(found), same_file_rivals.markdown(run, list(chosen)), facts)
    publish(text, SAME_FILE, options, run=run, bars=found)
    return status(run, chosen)


def chosen_files(parts: str) -> dict[str, File]:
    """The files in whose name one of the parts is, which have commas between them."""
    wanted = [part.strip().lower() for part in parts.split(",")]
    return {each.label: each for each in FILES if any(part in each.label.lower() for part in wanted)}


def fill(run: Run, chosen: dict[str, File], rounds: int, threads: int, rivals: Sequence[str]) -> None:
    """One file after the other; of each, the rounds of all engines take turns."""
    began, others = time.monotonic(), Others()
    prompt = real.made_files()
    contenders = [each for each in CONTENDERS if each.environment in {None, *rivals}]
    for label, file in chosen.items():
        say(f"making {label}")
        path = made(file)
        if not path.exists():
            absent = Figures(problem=f"its file is absent: scripts/real --all makes {path.relative_to(real.FOLDER)}")
            run.engines[label] = {each.name: absent for each in contenders}
            continue
        name = str(path.relative_to(real.FOLDER))
        job = Job("bfloat16", threads, str(real.FOLDER), name, str(prompt), keeps_programs=True)
        run.engines[label] = in_turn(
            contenders, replace(job, talks=file.talks, far=file.far, objects=file.objects), rounds
        )
    run.seconds, run.others = time.monotonic() - began, others.cores_used()


def made(file: File) -> Path:
    """The file, made once, unless it takes llama.cpp to make it."""
    from benchmarks.files.random_files import random_file
    from benchmarks.files.real_files import FILE as REAL
    from benchmarks.files.real_files import Q8_0, file_in

    if file.kind in REQUANTIZED:
        return real.FOLDER / "requantized" / f"{Q8_0.stem}-as-{file.kind}.gguf"
    if file.size != "270M":
        return random_file(file.size.lower(), file.kind)
    return REAL if file.kind == "Q4_K_M" else file_in(file.kind)


if __name__ == "__main__":
    sys.exit(main())
