"""Ten growing turns of a conversation with nothing warmed up: compiles, and seconds, beside llama.cpp.

    python benchmarks/start/growing.py
    python benchmarks/start/growing.py --rivals none

The model is the real Gemma 3 270M as a Q4_K_M file, which ``scripts/real --fetch`` brings. The first process finds an
empty cache and compiles what it needs; the next one finds that on the disk. All get the same ids:
prompts of 126 to 2,837 tokens, each of which begins with the one before and its answer of 24 tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import publish, report_options
from benchmarks.running.contenders import ENVIRONMENTS, say
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from benchmarks.work.growing_turns import ANSWER, FILE, prompts

ROOT = Path(__file__).parents[2]
COLD_BAR, NEXT_BAR = 1.5, 0.8  # of llama.cpp's seconds
MOST_PROGRAMS = 6
OURS = (__file__, "--play")
LLAMA = str(ROOT / "benchmarks" / "rivals" / "llama_growing.py")


@dataclass(frozen=True)
class Turns:
    """One process's ten turns."""

    seconds: tuple[float, ...]
    compiles: tuple[int, ...] = ()

    @property
    def total(self) -> float:
        return sum(self.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="benchmarks/start/growing.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rivals", choices=("llama", "none"), default="llama")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    report_options(parser)
    options = parser.parse_args(arguments)
    if options.play:
        print(json.dumps(list(ours())))
        return 0
    if not FILE.exists():
        parser.error(f"expected the file {FILE.relative_to(ROOT)}, found none: scripts/real --fetch brings it")
    others = Others()
    with tempfile.TemporaryDirectory() as scratch:
        say("an empty cache")
        cold = process(OURS, Path(scratch))
        say("the next process")
        after = process(OURS, Path(scratch))
    rival = ENVIRONMENTS / "llama" / "bin" / "python"
    theirs = process((LLAMA,), None, str(rival)) if options.rivals == "llama" and rival.exists() else None
    facts = machine()
    head = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}."
    used = others.cores_used()
    lines = [
        head,
        f"Others used {used or 0.0:.2f} cores meanwhile.",
        "",
        "| | ten turns | each | compiles |",
        "|---|---|---|---|",
    ]
    for name, turns in (("nothing compiled", cold), ("the next process", after), ("llama.cpp", theirs)):
        if turns is not None:
            each, made = ", ".join(f"{one:.1f}" for one in turns.seconds), ", ".join(map(str, turns.compiles))
            lines.append(f"| {name} | {turns.total:.1f} s | {each} | {made or '–'} |")
    publish("\n".join(lines), Block("growing turns figures", "python benchmarks/start/growing.py"), options,
            bars=rows(cold, after, theirs))  # fmt: skip
    return 0


def rows(cold: Turns, after: Turns, theirs: Turns | None) -> list[Row]:
    """The bars."""
    found: list[Row] = []
    for work, turns, bar in (
        ("ten turns, nothing compiled", cold, COLD_BAR),
        ("ten turns, next process", after, NEXT_BAR),
    ):
        ratio = None if theirs is None else turns.total / theirs.total
        beside = "–" if theirs is None else f"llama.cpp: {theirs.total:.1f} s"
        said = "not measured: llama.cpp is not installed" if ratio is None else verdict(ratio / bar - 1)
        found.append(Row(work, "Q4_K_M", f"{turns.total:.1f} s", beside, ratio, f"≤ {bar:g} ×", said))
    most, later = sum(cold.compiles), sum(cold.compiles[2:])
    found.append(
        Row("programs compiled in ten turns", "Q4_K_M", f"{most}, {later} behind turn 2", "–", None,
            f"≤ {MOST_PROGRAMS}", verdict(most / MOST_PROGRAMS - 1))
    )  # fmt: skip
    return found


def process(command: Sequence[str], cache: Path | None, python: str = sys.executable) -> Turns:
    """One process's turns."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "GEMMA_JAX_"))}
    own = {} if cache is None else {"GEMMA_JAX_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [python, *command],
        env=kept | own | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return Turns(tuple(each[0] for each in found), tuple(each[1] for each in found if len(each) > 1))


def ours() -> Iterator[tuple[float, int]]:
    """Seconds and compiles of each turn."""
    from langchain_gemma_jax import Sampling, engine

    running = engine()
    served = running.load(str(FILE))
    context: list[int] = []
    for new in prompts():
        context += new
        before, began = running.report().compiles, time.perf_counter()
        done = running.submit(served, context, Sampling(temperature=0.0, max_tokens=ANSWER, ignore_eos=True)).result()
        yield time.perf_counter() - began, running.report().compiles - before
        context += done.ids


if __name__ == "__main__":
    sys.exit(main())
