"""Time what a grammar costs: decoding that is held to one, beside free decoding, on Gemma 3 270M's shape.

    make bench-constrained
    make bench-constrained ARGS="--rounds 7 --dtype float32"

Four works take turns in one process, so ratios compare what ran in the same minute:

- free: drawn from the model as it is.
- easy: a long string, which these weights hardly ever break, as a trained model hardly breaks its schema.
- hard: digits only, to which random weights never keep, so each token is drawn under a mask.
- call: a call of a tool, most tokens of which are forced.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.running.bars import Row, verdict
from benchmarks.running.command import positive, publish, report_options
from benchmarks.running.contenders import prepare
from benchmarks.running.machine import Others, machine
from benchmarks.running.page import Block
from benchmarks.running.serve import Job
from benchmarks.work.vocabulary import write_tokenizer
from benchmarks.work.workload import DTYPES
from langchain_gemma_jax import Sampling, configure, engine
from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import Grammar

BLOCK = Block("constrained figures", "make bench-constrained")
PROMPT, TOKENS = 64, 64
COST_BAR = 1.1
MEMBERS = ("customer_identifier", "delivery_address", "requested_quantity", "preferred_currency")
CALL: dict[str, Json] = {
    "type": "object",
    "properties": {name: {"enum": ["a", "b"]} for name in MEMBERS},
    "required": list(MEMBERS),
}
GRAMMARS: dict[str, Grammar | None] = {
    "free": None,
    "easy": json_grammar({"type": "string", "minLength": 50}),
    "hard": json_grammar({"type": "string", "pattern": "^[0-9]{50,1000}$"}),
    "call": json_grammar(CALL),
}

Work = dict[str, float]  # seconds a token by work


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="benchmarks/engine/constrained.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=positive, default=5, help="5 by default")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    report_options(parser)
    options = parser.parse_args(arguments)
    others = Others()
    found = measure(options.dtype, options.rounds)
    text = report(found, options.dtype, others.cores_used())
    publish(text, BLOCK, options, bars=rows(found, options.dtype))
    return 0


def measure(dtype: str, rounds: int) -> dict[str, list[Completion]]:
    """Return the figures of each work in each round."""
    job = Job(dtype, 0, str(prepare()))
    write_tokenizer(job.checkpoint)
    configure(drafts=False)
    served = engine().load(str(job.checkpoint), dtype=dtype)
    for grammar in GRAMMARS.values():
        engine().prepare(served, grammar)
    found: dict[str, list[Completion]] = {work: [] for work in GRAMMARS}
    for number in range(-1, rounds):  # the first one is not counted: what it needs is compiled then
        say(f"round {number + 1} of {rounds}")
        for work, grammar in GRAMMARS.items():
            prompt = random.Random(f"{number} {work}").choices(range(300, 200_000), k=PROMPT)
            sampling = Sampling(temperature=1.0, seed=number + 1, max_tokens=TOKENS, ignore_eos=True, grammar=grammar)
            done = engine().submit(served, prompt, sampling).result()
            if number >= 0:
                found[work].append(done)
    engine().close()
    return found


def seconds_a_token(done: Completion) -> float:
    """Behind the first one. Those that the ending adds cost nothing and are left out."""
    return (done.timings.total_s - done.timings.first_token_s) / (done.generated_tokens - 1)


def report(found: dict[str, list[Completion]], dtype: str, others: float | None) -> str:
    """The figures as Markdown."""
    of, rounds = machine(), len(found["free"])
    busy = "an unknown number of" if others is None else f"{others:.2f}"
    costs = {work: [seconds_a_token(done) for done in answers] for work, answers in found.items()}
    ratios, lines = beside_free(costs), []
    for work, answers in found.items():
        forced = sum(done.forced_tokens for done in answers) / sum(done.generated_tokens for done in answers)
        lines.append(f"| {work} | {1000 * median(costs[work]):.1f} | {ratios[work]:.2f} | {forced:.0%} |")
    easy = f"{ratios['easy']:.2f}, {'reached' if ratios['easy'] <= COST_BAR else '**missed**'}"
    call = f"{ratios['call']:.2f}, {'reached' if ratios['call'] < 1 else '**missed**'}"
    head = (
        f"{of['processor']}, {of['cores']} cores; {dtype}; {rounds} rounds; up to {TOKENS} tokens behind {PROMPT}, "
        f"drawn at temperature 1. Others used {busy} cores meanwhile."
    )
    return "\n".join(
        (
            head,
            "",
            "| work | ms a token, median | ÷ free, median of rounds | tokens forced |",
            "|---|---|---|---|",
            *lines,
            "",
            f"- at most {COST_BAR} times what a free token costs: {easy}",
            f"- a call costs less than as many free tokens: {call}",
        )
    )


def beside_free(costs: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The cost of a token by work, in tokens of the free one: the median of the rounds."""
    return {
        work: median(one / free for one, free in zip(each, costs["free"], strict=True)) for work, each in costs.items()
    }


def rows(found: Mapping[str, Sequence[Completion]], dtype: str) -> list[Row]:
    """The bars of this benchmark, and how far each was reached."""
    costs = {work: [seconds_a_token(done) for done in answers] for work, answers in found.items()}
    ratios, beside = beside_free(costs), f"free: {1000 * median(costs['free']):.1f} ms"
    bars = {"easy": ("a token under an easy grammar", COST_BAR), "call": ("a token of a tool's call", 1.0)}
    return [
        Row(work, dtype, f"{1000 * median(costs[name]):.1f} ms", beside, ratios[name], f"≤ {bar:g} ×",
            verdict(ratios[name] / bar - 1))
        for name, (work, bar) in bars.items()
    ]  # fmt: skip


def say(text: str) -> None:
    """Progress, beside the report."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
