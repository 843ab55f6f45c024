"""Time one model by transformers' code in five ways, and by our own forward pass, in one run.

    python benchmarks/families/families.py              three rounds
    python benchmarks/families/families.py --quick      one round
    python benchmarks/families/families.py --write-docs

The model is Gemma 3 270M's shape with random weights, in float32: there are weights of it for everybody, and our own
forward pass can be beside them. Needs the environment of ``scripts/torchax``. The table goes to benchmarks/figures.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.command import empty_run, parse, publish, status
from benchmarks.running.contenders import PATIENT, Contender, in_turn, prepare, rivals_of
from benchmarks.running.figures import Figures, Run, agreeing
from benchmarks.running.machine import Others
from benchmarks.running.page import FAMILIES
from benchmarks.running.report import bullets, busy, machine_and_versions, sections, table
from benchmarks.running.serve import Job
from benchmarks.work.workload import LONG_PROMPT, PROMPT

DTYPE = "float32"
TORCH, COMPILED, EAGER = "torch, eager", "torch.compile", "torchax, eager"
THROUGH, OWN = "torchax, this package's engine", "our own forward pass"
BAR = 3.0  # times as fast as torch in ten turns
CONTENDERS = (
    Contender(TORCH, "benchmarks.rivals.torch_family", "torchax", **PATIENT),
    Contender(COMPILED, "benchmarks.rivals.torch_compiled", "torchax", **PATIENT),
    Contender(EAGER, "benchmarks.rivals.torchax_eager", "torchax", **PATIENT),
    Contender(THROUGH, "benchmarks.families.ours_torchax", "torchax", **PATIENT),
    Contender(OWN, "benchmarks.families.ours_family", "torchax", **PATIENT),
)
NAMES = [each.name for each in CONTENDERS]


def main(arguments: Sequence[str] | None = None, chosen: Sequence[Contender] = CONTENDERS) -> int:
    """Run the benchmark; the exit status is 1 if this package could not be measured."""
    options = parse(arguments, "families/families", (__doc__ or "").partition("\n")[0], rivals_of(CONTENDERS))
    run, began, others = empty_run(options), time.monotonic(), Others()
    run.engines[DTYPE] = in_turn(chosen, Job(DTYPE, options.threads, str(prepare())), options.rounds)
    run.seconds, run.others = time.monotonic() - began, others.cores_used()
    text = markdown(run)
    publish(text, FAMILIES, options, run=run)
    return status(run, [DTYPE], (THROUGH, OWN))


def markdown(run: Run) -> str:
    """The table, what follows from it, and what it was measured with."""
    facts = [*_verdicts(run), *machine_and_versions(run, NAMES, (DTYPE,))]
    return sections(busy(run), _table(run), bullets(facts))


def ten_turns(figures: Figures) -> float | None:
    """The median of the rounds of what a conversation took. None: it held none."""
    if not figures.measured or "conversation" not in figures.rounds[0]:
        return None
    held = (cast("Mapping[str, Sequence[float]]", each["conversation"])["whole"] for each in figures.rounds)
    return median(sum(turns) for turns in held)


def _table(run: Run) -> str:
    body, own, torch = [], run.of(OWN, DTYPE), ten_turns(run.of(TORCH, DTYPE))
    for name in NAMES:
        figures = run.of(name, DTYPE)
        if not figures.measured:
            body.append([name, *["–"] * 5, f"{figures.problem}"])
            continue
        speeds = [f"{median(each):,.0f}" for each in (figures.prefill(PROMPT), figures.prefill(LONG_PROMPT))]
        held = ten_turns(figures)
        turns = ["–", "–"] if held is None else [f"{held:.1f} s", f"{torch / held:.1f} ×" if torch else "–"]
        alike = f"{agreeing(own.tokens(), figures.tokens())} of {len(own.tokens())}" if own.measured else "–"
        body.append([name, *speeds, f"{median(figures.decode()):.1f}", *turns, alike])
    return table(
        [
            "tokens a second",
            f"prefill of {PROMPT}",
            f"of {LONG_PROMPT}",
            "decode",
            "ten turns",
            "beside torch",
            "tokens as our own",
        ],
        body,
    )


def _verdicts(run: Run) -> Iterator[str]:
    torch, through = (ten_turns(run.of(name, DTYPE)) for name in (TORCH, THROUGH))
    if torch and through:
        ratio = torch / through
        yield f"ten turns through torchax beside torch: {ratio:.1f} ×, bar {BAR:.0f} ×: {_word(ratio >= BAR)}"
    for name in (THROUGH, OWN):
        figures = run.of(name, DTYPE)
        if figures.measured:
            facts, later = figures.facts, sum(cast("int", each["compiles"]) for each in figures.rounds)
            fits = cast("int", facts["programs"]) <= cast("int", facts["program_bound"]) and later == 0
            yield (
                f"{name}: {facts['programs']} programs of at most {facts['program_bound']}, compiled in "
                f"{cast('float', facts['compile_seconds']):.0f} s before the rounds, {later} in them: {_word(fits)}"
            )


def _word(reached: bool) -> str:  # noqa: FBT001  a verdict
    return "reached" if reached else "missed"


if __name__ == "__main__":
    raise SystemExit(main())
