"""Run our engine's work of a round, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable

import jax

from benchmarks.engine import engine_work as work
from benchmarks.forward.ours import describe
from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.conversation import LENGTH, WARM_UP, rounds
from benchmarks.work.taught import teach
from langchain_gemma_jax import configure, engine, load_model

MAX_CONTEXT = 2560  # programs are compiled for contexts up to here
ROWS = (1, 8)  # conversations in the steps that are looked into

if MAX_CONTEXT < LENGTH:
    raise ValueError(f"the conversation ends with {LENGTH} tokens, and programs would be there for {MAX_CONTEXT}")


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Load and compile; give what a round is."""
    # Where checking several tokens costs more than making one, the engine would not draft. Here both is measured.
    configure(drafts=True)
    running = engine()
    model = load_model(job.checkpoint, dtype=job.dtype)
    plain = running.serve(model)
    taught = running.serve(teach(model, *work.replay_ids()))
    running.warmup(plain, max_context=MAX_CONTEXT)
    warm = running.report()

    def run(number: int) -> Answer:
        before = running.report().compiles
        found: dict[str, Answer] = {
            "conversation": work.conversation(running, plain, number, drafts=False),
            "drafted conversation": work.conversation(running, plain, number, drafts=True),
            "together": work.together(running, plain, number),
            "replay": work.replay(running, taught, number, drafts=False),
            "drafted replay": work.replay(running, taught, number, drafts=True),
            "steps": {str(rows): work.steps(running, plain, number, rows) for rows in ROWS},
        }
        return {**found, "compiles": running.report().compiles - before}

    # Memory is touched, and whatever else a first time has is over. Of the other model few programs are needed.
    work.steps(running, plain, WARM_UP, max(ROWS))
    for drafts in (False, True):
        work.conversation(running, plain, WARM_UP, drafts=drafts, count=2)
        work.replay(running, taught, WARM_UP, drafts=drafts)
    facts: Answer = {
        "version": f"jax {jax.__version__}",
        "recipe": describe(model.recipe),
        "programs": warm.programs,
        "program_bound": warm.program_bound,
        "compile_seconds": warm.compile_s,
        "step_rows": ROWS,
    }
    return facts, rounds(run)


if __name__ == "__main__":
    serve(start)
