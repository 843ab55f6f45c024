"""Try drafts on recorded conversations, without a model: how many passes an answer takes, and what they cost.

    python -m benchmarks.drafts.simulate --each-row 0.1

What the model says is what was recorded, so a draft is right as far as it says the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from benchmarks.drafts.traces import RECORDED, Trace, Turn, read
from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SUFFIXES
from langchain_gemma_jax.engine.drafting.drafter import DraftCount
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts

MOST = 7  # tokens that are checked at once
SOURCES = (SUFFIXES, PROMPT)  # those that need no model
CHOICES = {"none": (), **{name: (name,) for name in SOURCES}, "all": SOURCES}


@dataclass
class Simulated:
    """The passes that some answers took, with their cost in passes of one row, and what was drafted."""

    tokens: int = 0
    passes: int = 0
    cost: float = 0.0
    proposing: float = 0.0  # seconds
    counts: dict[str, DraftCount] = field(default_factory=dict)

    @property
    def speed(self) -> float:
        """Tokens in the time of one without drafts."""
        return self.tokens / self.cost if self.cost else 1.0


def simulate(drafts: ModelDrafts, scope: str, turn: Turn, each_row: float, into: Simulated) -> None:
    """Have one answer given, with drafts. The first token comes with the prompt."""
    drafter = drafts.drafter(scope)
    context, end = [*turn.prompt, *turn.answer[:1]], len(turn.prompt) + len(turn.answer)
    while len(context) < end:
        began = perf_counter()
        draft = () if drafter is None else drafter.propose(context, end - len(context) - 1)
        into.proposing += perf_counter() - began
        coming = turn.answer[len(context) - len(turn.prompt) :]
        right = 0
        while right < len(draft) and draft[right] == coming[right]:
            right += 1
        rows, cost = 1 + len(draft), 1 + each_row * len(draft)
        if drafter is not None:
            if draft:
                drafter.record(len(draft), right)
            drafter.took(rows, cost)
        context += coming[: right + 1]
        into.tokens, into.passes, into.cost = into.tokens + right + 1, into.passes + 1, into.cost + cost
    if drafter is not None:
        drafts.add(scope, turn.prompt, turn.answer, drafter)
        for source, count in drafter.counts.items():
            into.counts[source] = into.counts.get(source, DraftCount()).plus(*count)


def replay(trace: Trace, sources: tuple[str, ...], each_row: float) -> dict[str, list[Simulated]]:
    """Return what each conversation of each agent takes; an agent has a scope of its own."""
    drafts = ModelDrafts(sources, MOST)
    found: dict[str, list[Simulated]] = {}
    for agent, conversations in trace.items():
        for turns in conversations:
            result = Simulated()
            for turn in turns:
                simulate(drafts, agent, turn, each_row, result)
            found.setdefault(agent, []).append(result)
    return found


def report(trace: Trace, each_row: float) -> str:
    """Return the speeds of all choices of sources, as Markdown."""
    head = ["agent", "sources", "first conversation", "later ones", "accepted of drafted", "proposing, of a token"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, sources in CHOICES.items():
        for agent, results in replay(trace, sources, each_row).items():
            first, later = results[0], results[1:]
            tokens, cost = sum(each.tokens for each in later), sum(each.cost for each in later)
            counts = [count for each in results for count in each.counts.values()]
            accepted, drafted = sum(each.accepted for each in counts), sum(each.drafted for each in counts)
            speed = f"{tokens / cost:.2f} ×" if cost else "–"
            each = sum(result.proposing for result in results) / sum(result.tokens for result in results)
            lines.append(
                f"| {agent} | {name} | {first.speed:.2f} × | {speed} | {accepted} of {drafted} | {each * 1e6:.0f} µs |"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drafts.simulate", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--trace", type=Path, default=RECORDED, help="a recorded trace; the committed one by default")
    parser.add_argument("--each-row", type=float, default=0.2, help="cost of a further row, in passes of one: 0.2")
    options = parser.parse_args(arguments)
    print(report(read(options.trace), options.each_row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
