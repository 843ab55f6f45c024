"""Time a step of eight rows over one set of weights: with no adapter, with one for all rows, and with four.

    python benchmarks/engine/adapters.py
    python benchmarks/engine/adapters.py --models sprout-s --rank 64 --rounds 9

The adapters are random, of one rank, and change all projections of all layers. They take turns in each round. A step is
timed by the answer that began last: by then all eight prompts have been read.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.engine.embedded import speed
from benchmarks.files.real_files import FILE
from benchmarks.running.command import PAGE, positive, publish
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from langchain_gemma_jax import Ladders, Sampling, Served, configure, engine
from langchain_gemma_jax.engine.api.adapters import base_of
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.models.adapters.adapter import Adapter, LowRank, made

BLOCK = Block("adapters figures", "benchmarks/engine/adapters.py")
ADAPTERS, ROWS, PROMPT, TOKENS, RANK = (0, 1, 4), 8, 32, 64, 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/engine/adapters.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--models", nargs="+", default=["sprout-m", *[str(FILE)] * FILE.exists()])
    parser.add_argument("--rank", type=positive, default=RANK, help=f"of each adapter; {RANK} by default")
    parser.add_argument("--rounds", type=positive, default=7, help="7 by default")
    parser.add_argument("--note", default="", help="a sentence about this run, for the report")
    parser.add_argument(
        "--write-docs", action="store_true", help=f"renew the figures in {PAGE.relative_to(PAGE.parents[1])}"
    )
    options = parser.parse_args(arguments)
    configure(drafts=False, ladders=Ladders(chunks=(16, 64), capacities=(256,), rows=(1, ROWS)))
    others = Others()
    found = {Path(model).stem: measure(model, options.rank, options.rounds) for model in options.models}
    publish(report(found, options.rank, others.cores_used(), options.note), BLOCK, options)
    return 0


def measure(model: str, rank: int, rounds: int) -> Mapping[int, list[float]]:
    """Return the seconds of a step in each round, by the number of adapters in it."""
    served = engine().load(model)
    adapters = [made_up(served, rank, number) for number in range(max(ADAPTERS))]
    found: dict[int, list[float]] = {count: [] for count in ADAPTERS}
    for number in range(-2, rounds):  # the first ones are not counted: what they need is compiled then
        for count in ADAPTERS:
            seconds = step(served, adapters[:count], f"{number} {count}")
            if number >= 0:
                found[count].append(seconds)
    engine().unload(served)
    return found


def made_up(served: Served, rank: int, seed: int) -> Adapter:
    """Return a random adapter of all projections, which changes little."""
    base, numbers = base_of(served.model), np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray:
        return numbers.normal(0, 0.01, shape).astype(np.float32)

    pairs = {
        (number, projection): LowRank(matrix(rank, one.inputs), matrix(outputs, rank))
        for number, layer in enumerate(base.layers)
        for one in layer.matrices.values()
        for projection, outputs in one.parts.items()
    }
    return made(f"random {seed}", Path(f"random-{seed}"), "", pairs, base)


def step(served: Served, adapters: Sequence[Adapter], seed: str) -> float:
    """Return the seconds of a step of ``ROWS`` rows, each under one of the adapters, if there are any."""
    words = random.Random(seed)
    ids = range(300, served.model.config.vocab_size)
    sampling = Sampling(temperature=0, max_tokens=TOKENS, ignore_eos=True)
    prompts = [Prompt.of_tokens(words.choices(ids, k=PROMPT)) for _ in range(ROWS)]
    under = [prompt.under(adapters[row % len(adapters)] if adapters else None) for row, prompt in enumerate(prompts)]
    waiting = [engine().submit(served, prompt, sampling) for prompt in under]
    answers = [each.result() for each in waiting]
    return 1 / speed(max(answers, key=lambda done: done.timings.first_token_s))


def report(found: Mapping[str, Mapping[int, Sequence[float]]], rank: int, others: float | None, note: str = "") -> str:
    """The figures as Markdown."""
    of = machine()
    busy = "an unknown number of" if others is None else f"{others:.2f}"
    table = [
        f"| model | adapters among {ROWS} rows | ms a step | tokens a second | beside none |",
        "|---|---|---|---|---|",
    ]
    for model, steps in found.items():
        alone = median(steps[0])
        for count, seconds in steps.items():
            took = median(seconds)
            table.append(
                f"| {model} | {count or 'none'} | {1000 * took:.2f} | {ROWS / took:.0f} | {took / alone:.2f} × |"
            )
    rounds = max(len(steps[0]) for steps in found.values())
    head = (
        f"{of['processor']}, {of['cores']} cores; rank {rank}, all projections; medians of {rounds} rounds. Others "
        f"used {busy} cores meanwhile."
    )
    return "\n".join((f"{head} {note}".rstrip(), "", *table))


if __name__ == "__main__":
    sys.exit(main())
