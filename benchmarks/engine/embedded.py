"""Time the embedded models on this machine: a prompt of 500 tokens, and tokens behind it.

    make bench-embedded
    make bench-embedded ARGS="--models sprout-s --rounds 9"

Every prompt is new, so all of it is read. Tokens are decoded one after another, without drafts.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.command import PAGE, positive, publish
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from langchain_gemma_jax import Sampling, configure, engine
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.models.configuration.embedded import DEFAULT, EMBEDDED

BLOCK = Block("embedded figures", "make bench-embedded")
PROMPT, TOKENS = 500, 200
FIRST_BAR, SPEED_BAR = 0.3, 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/engine/embedded.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--models", nargs="+", default=list(EMBEDDED), help="names, or folders")
    parser.add_argument("--rounds", type=positive, default=7, help="7 by default")
    parser.add_argument(
        "--write-docs", action="store_true", help=f"renew the figures in {PAGE.relative_to(PAGE.parents[1])}"
    )
    options = parser.parse_args(arguments)
    configure(drafts=False)
    others = Others()
    text = report({model: measure(model, options.rounds) for model in options.models}, others.cores_used())
    publish(text, BLOCK, options)
    return 0


def measure(model: str, rounds: int) -> list[Completion]:
    """Return the figures of each round, all programs being there."""
    served = engine().load(model)
    words = range(300, served.model.config.vocab_size)
    found = []
    for number in range(-2, rounds):  # the first ones are not counted: what they need is compiled then
        prompt = random.Random(f"{model} {number}").choices(words, k=PROMPT)
        sampling = Sampling(temperature=0, max_tokens=TOKENS, ignore_eos=True)
        done = engine().submit(served, prompt, sampling).result()
        if number >= 0:
            found.append(done)
    return found


def speed(done: Completion) -> float:
    """Tokens a second behind the first one."""
    return (done.generated_tokens - 1) / (done.timings.total_s - done.timings.first_token_s)


def report(found: Mapping[str, Sequence[Completion]], others: float | None) -> str:
    """The figures as Markdown."""
    of = machine()
    busy = "an unknown number of" if others is None else f"{others:.2f}"
    rows, bars = [], []
    for model, answers in found.items():
        first, decoded = median(each.timings.first_token_s for each in answers), median(map(speed, answers))
        rows.append(f"| {model} | {1000 * first:.0f} | {decoded:.0f} |")
        if model == DEFAULT:
            bars = [
                f"- {model}, first token within {FIRST_BAR} s: {_reached(well=first < FIRST_BAR)}",
                f"- {model}, {SPEED_BAR} tokens a second: {_reached(well=decoded >= SPEED_BAR)}",
            ]
    count = max(map(len, found.values()))
    head = f"{of['processor']}, {of['cores']} cores; medians of {count} rounds. Others used {busy} cores meanwhile."
    table = [f"| model | ms to the first token behind {PROMPT} | tokens a second |", "|---|---|---|", *rows]
    return "\n".join((head, "", *table, *([""] if bars else []), *bars))


def _reached(*, well: bool) -> str:
    return "reached" if well else "**missed**"


if __name__ == "__main__":
    sys.exit(main())
