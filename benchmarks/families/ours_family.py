"""Measure one model through our own forward pass: its programs alone, and its engine in a conversation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax

from benchmarks.engine.engine_work import Talking
from benchmarks.forward.ours import Ours, describe
from benchmarks.running.serve import Answer, Job, serve, time_round, warm_up
from benchmarks.work.conversation import WARM_UP, hold, rounds
from benchmarks.work.vocabulary import write_tokenizer
from langchain_gemma_jax import Ladders, configure, engine
from langchain_gemma_jax.models.loading.load import load

MAX_CONTEXT = 2560  # programs are compiled for contexts up to here
LADDERS = Ladders(chunks=(16, 64, 256), capacities=(1024, MAX_CONTEXT), rows=(1,), draft=0)  # one conversation


def start(prefix: str, job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Load and compile; give what a round is. ``prefix``: what stands before the folder, if anything does."""
    configure(drafts=False, max_context=MAX_CONTEXT, ladders=LADDERS, guards="raise")
    write_tokenizer(job.checkpoint)
    running, model = engine(), load(f"{prefix}{job.checkpoint}", dtype=job.dtype)
    alone = Ours(model.architecture, model.recipe, model.params, model.device)
    served = running.serve(model)
    running.warmup(served, max_context=MAX_CONTEXT)
    warm_up(alone)
    hold(Talking(running, served, "warm", drafts=False), WARM_UP, count=2)
    warm = running.report()

    def run(number: int) -> Answer:
        before = running.report().compiles
        talking = Talking(running, served, f"conversation {number}", drafts=False)
        found = {**time_round(alone), "conversation": hold(talking, number)}
        return {**found, "compiles": running.report().compiles - before}

    facts: Answer = {
        "version": f"jax {jax.__version__}",
        "weight_bytes": model.nbytes,
        "recipe": describe(model.recipe),
        "programs": warm.programs,
        "program_bound": warm.program_bound,
        "compile_seconds": warm.compile_s,
    }
    return facts, rounds(run)


if __name__ == "__main__":
    serve(partial(start, ""))
