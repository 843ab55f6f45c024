"""Measure this package on a file, or on the real 270M in another form: its programs alone, and in a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jax

from benchmarks.engine.engine_work import Talking
from benchmarks.files.real_files import FILE, Q8_0, bytes_of
from benchmarks.forward.ours import Ours, describe
from benchmarks.running.serve import Answer, Job, Json, serve, time_round, warm_up
from benchmarks.work.conversation import WARM_UP, hold, rounds
from langchain_gemma_jax import Ladders, configure, engine
from langchain_gemma_jax.engine.residency.served import CPU_CHUNKS
from langchain_gemma_jax.models.compare import TEXT, score
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.model import Model

MAX_CONTEXT = 2560  # programs are compiled for contexts up to here
WAYS = {  # what is loaded, and how; any other name is that of a file, which is taken as it is
    "float32": ("float32", None),
    "bfloat16": ("bfloat16", None),
    "int8": ("bfloat16", "int8"),
    "int4": ("bfloat16", "int4"),
    "Q8_0": (Q8_0.name, None),
    "Q4_K_M": (FILE.name, None),
}


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Load and compile; give what a round is."""
    # One conversation at a time, so programs for several are not compiled; all else is what nobody has to ask for.
    configure(drafts=True, max_context=MAX_CONTEXT, ladders=Ladders(rows=(1,), chunks=CPU_CHUNKS))
    name, weights = WAYS.get(job.model, (job.model, None))
    path, text = Path(job.folder, name), json.loads(Path(job.prompt).read_text())
    model = opened(path, weights)
    ours = Ours(model.architecture, model.recipe, model.params, model.device)
    facts: dict[str, Json] = {
        "version": f"jax {jax.__version__}",
        "weight_bytes": model.nbytes,
        "disk_bytes": bytes_of([path]),
        "recipe": describe(model.recipe),
    }
    if not job.talks:
        warm_up(ours, text)
        return facts, lambda: time_round(ours, text)
    running = engine()
    served = running.serve(model)
    running.warmup(served, max_context=MAX_CONTEXT)
    warm_up(ours, text)

    def run(number: int) -> Answer:
        found: dict[str, Answer] = {}
        for drafts in (False, True):
            talking = Talking(running, served, f"conversation {number}, drafts {drafts}", drafts)
            found["drafted" if drafts else "conversation"] = hold(talking, number, text=text)
        return {**time_round(ours, text), **found}

    for drafts in (False, True):
        hold(Talking(running, served, f"warm, drafts {drafts}", drafts), WARM_UP, count=2, text=text)
    scored = score(model, TEXT)
    return {**facts, "loss": scored.loss, "best": scored.best}, rounds(run)


def opened(path: Path, weights: str | None) -> Model:
    """The model, in the dtype that it is used in when nobody says otherwise."""
    return load(path, weights=weights, progress=False)


if __name__ == "__main__":
    serve(start)
