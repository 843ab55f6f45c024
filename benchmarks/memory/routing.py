"""An agent that asks for little and for much in turns, in a memory that holds one of its two sizes.

    make bench-routing
    make bench-routing ARGS="--steps 20 --light ./a --heavy ./b"

One conversation grows by a few tokens a step. Every other step asks for much. Four policies take the same steps:

- by step: the size that suits the step by itself, whatever it costs.
- default: the policy that a Route has.
- light, heavy: always the same size.

Weights are random, so this is about memory and time: what is said is worth nothing, whoever says it.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.memory.memory import BUILT, MODELS, checkpoint
from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from benchmarks.running.report import bars_table
from langchain_gemma_jax import Choice, Sampling, Signals, configure, engine
from langchain_gemma_jax.routing import Policy, default_policy

BLOCK = Block("routing figures", "make bench-routing")
SIZES = ("light", "heavy")
START, MORE, SAID, CONTEXT = 200, 20, 16, 2048  # tokens: of the first prompt, of each step, of an answer; that fit
SWITCH_BAR = 5


@dataclass(frozen=True)
class Run:
    """One policy's way through the steps."""

    sizes: tuple[str, ...]
    seconds: float
    loads: int
    most_bytes: int  # in memory at any step's end
    left_bytes: int  # on the device, when all is closed

    @property
    def switches(self) -> int:
        return sum(one != other for one, other in pairwise(self.sizes))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/memory/routing.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--steps", type=positive, default=50, help="50 by default")
    parser.add_argument(
        "--light", type=Path, help="a model's folder; by default random weights of Gemma 3 270M's shape"
    )
    parser.add_argument("--heavy", type=Path, help="by default of Gemma 3 1B's")
    report_options(parser)
    options = parser.parse_args(arguments)
    folders = {
        "light": options.light or checkpoint(BUILT / "gemma-3-270m", MODELS["gemma-3-270m"]),
        "heavy": options.heavy or checkpoint(BUILT / "gemma-3-1b", MODELS["gemma-3-1b"]),
    }
    os.environ["GEMMA_JAX_COMPILE_CACHE"] = str(BUILT / "xla")
    others = Others()
    budget = fits_one(folders)
    walk(folders, budget, by_step, 4)  # what is compiled now is on the disk ever after
    found = {}
    for name, policy in POLICIES.items():
        print(name, file=sys.stderr, flush=True)
        found[name] = walk(folders, budget, policy, options.steps)
    text = report(found, budget, options.steps, others.cores_used())
    publish(text, BLOCK, options, bars=rows(found, budget))
    return 0


def by_step(signals: Signals) -> Choice:
    """Choose whatever the step by itself asks for."""
    return Choice("heavy" if signals.tools else "light", "the step by itself")


POLICIES: Mapping[str, Policy] = {
    "by step": by_step,
    "default": default_policy,
    "light": lambda _: Choice("light", "always"),
    "heavy": lambda _: Choice("heavy", "always"),
}


def fits_one(folders: Mapping[str, Path]) -> int:
    """A budget that holds the larger model with its conversations, and not both: found by loading it alone."""
    configure(max_context=CONTEXT, guards="off")
    running, needs = engine(), {}
    for name, folder in folders.items():
        served = running.load(folder)
        running.submit(served, prompt_of(CONTEXT - SAID), Sampling(max_tokens=SAID, ignore_eos=True)).result()
        (needs[name],) = (status.nbytes for status in running.models())
        running.unload(served)
    running.close()
    return max(needs.values()) + min(needs.values()) // 3


def walk(folders: Mapping[str, Path], budget: int, policy: Policy, steps: int) -> Run:
    """All steps with one policy, in an engine of its own."""
    before = on_device()
    configure(max_context=CONTEXT, memory_budget=budget, guards="off")
    running, prompt = engine(), prompt_of(START)
    sizes: list[str] = []
    most, quiet, began = 0, 0, time.perf_counter()
    for number in range(steps):
        hard = number % 2 == 1
        status = {name: running.status(folder) for name, folder in folders.items()}
        signals = Signals(
            sizes=SIZES,
            last=sizes[-1] if sizes else None,
            tools=6 if hard else 0,
            structured=hard,
            prompt_tokens=len(prompt),
            quiet_turns=quiet,
            resident=frozenset(name for name, found in status.items() if found is not None and found.resident),
            switch_s={name: found.load_s for name, found in status.items() if found is not None},
        )
        sizes.append(policy(signals).size)
        quiet = 0 if hard else quiet + 1
        served = running.load(folders[sizes[-1]])
        done = running.submit(served, prompt, Sampling(max_tokens=SAID, ignore_eos=True)).result()
        prompt = [*prompt, *done.ids, *prompt_of(MORE)]
        most = max(most, sum(each.nbytes for each in running.models()))
    seconds, loads = time.perf_counter() - began, running.report().loads
    for folder in folders.values():
        if running.status(folder) is not None:
            running.unload(running.load(folder))
    running.close()
    return Run(tuple(sizes), seconds, loads, most, on_device() - before)


def prompt_of(tokens: int) -> list[int]:
    """Some tokens."""
    return [2, *(4 + number * 7919 % 250 for number in range(tokens - 1))]


def on_device() -> int:
    """Bytes of all arrays that there are."""
    import jax

    gc.collect()
    return sum(array.nbytes for array in jax.live_arrays())


def report(found: Mapping[str, Run], budget: int, steps: int, others: float | None) -> str:
    """The figures as Markdown."""
    facts, busy = machine(), "an unknown number of" if others is None else f"{others:.2f}"
    lines = [
        f"| {name} | {run.switches} | {run.loads} | {run.seconds:.1f} | {run.most_bytes / budget:.0%} "
        f"| {run.left_bytes} |"
        for name, run in found.items()
    ]
    head = (
        f"{facts['processor']}, {facts['cores']} cores; {steps} steps, every other one of which asks for much; a "
        f"budget of {budget / 1e9:.2f} GB. Others used {busy} cores meanwhile."
    )
    return "\n".join(
        (
            head,
            "",
            "| policy | switches | loads | seconds | of the budget at most | bytes left behind |",
            "|---" * 6 + "|",
            *lines,
            "",
            bars_table(rows(found, budget)),
        )
    )


def rows(found: Mapping[str, Run], budget: int) -> list[Row]:
    """The bars of this benchmark, and how far each was reached."""
    stepwise, ours = found["by step"], found["default"]
    fewer = stepwise.switches / max(1, ours.switches)
    over = [name for name, run in found.items() if run.most_bytes > budget or run.left_bytes]
    return [
        Row(
            "switches between two sizes",
            "bfloat16",
            f"{ours.switches} in {ours.seconds:.1f} s",
            f"by step: {stepwise.switches} in {stepwise.seconds:.1f} s",
            fewer,
            f"≥ {SWITCH_BAR} ×",
            verdict(1 - fewer / SWITCH_BAR),
        ),
        Row(
            "over the budget, or bytes left behind",
            "bfloat16",
            ", ".join(over) or "never",
            f"{len(found)} policies",
            None,
            "never",
            "**missed**" if over else "reached",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
