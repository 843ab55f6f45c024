"""Measure this package on a file, or on the real 270M in another form: its programs alone, and in a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax

from benchmarks.engine.engine_work import Talking
from benchmarks.files.real_files import FILE, Q8_0, bytes_of
from benchmarks.forward.ours import Ours, describe
from benchmarks.running.serve import Answer, Job, Json, serve, time_round, warm_up
from benchmarks.work import long_context
from benchmarks.work.conversation import WARM_UP, hold, rounds
from benchmarks.work.page_loss import PAGE
from benchmarks.work.several import AT_ONCE, SCHEMA, time_object, time_together
from langchain_gemma_jax import Engine, Ladders, Sampling, Served, configure, engine
from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.engine.residency.served import CPU_CHUNKS
from langchain_gemma_jax.models.compare import TEXT, score, score_ids
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.loading.model import Model

MAX_CONTEXT = long_context.CAPACITY  # programs are compiled for contexts up to here
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
    # Programs for several conversations are compiled where several are timed; all else is what nobody has to ask for.
    rows = (1, max(AT_ONCE)) if job.far else (1,)
    configure(drafts=True, max_context=MAX_CONTEXT, ladders=Ladders(rows=rows, chunks=CPU_CHUNKS))
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
    several = Several(running, served)
    if job.objects:
        running.prepare(served, several.GRAMMAR)

    def run(number: int) -> Answer:
        found: dict[str, Json] = {}
        for drafts in (False, True):
            talking = Talking(running, served, f"conversation {number}, drafts {drafts}", drafts)
            found["drafted" if drafts else "conversation"] = hold(talking, number, text=text)
        if job.far:
            far = Talking(running, served, f"long {number}", drafts=False)
            found["long"] = long_context.time_long(far, number, text)
            found["together"] = time_together(several.decode, number, text)
        if job.objects:
            found["object"] = time_object(several.under_grammar, number, text)
        return {**time_round(ours, text), **found}

    for drafts in (False, True):
        hold(Talking(running, served, f"warm, drafts {drafts}", drafts), WARM_UP, count=2, text=text)
    scored = score(model, TEXT)
    losses: dict[str, Json] = {
        "loss": scored.loss,
        "best": scored.best,
        "page loss": score_ids(model, text[:PAGE]).loss,
    }
    if not model.recipe.storage.dense:
        with load(path, weights=weights, activations="float32", progress=False) as exact:
            losses["exact loss"] = score_ids(exact, text[:PAGE]).loss
    return {**facts, **losses}, rounds(run)


@dataclass(frozen=True)
class Several:
    """A model that answers several conversations at once, and under a grammar."""

    engine: Engine
    served: Served
    GRAMMAR: ClassVar = json_grammar(SCHEMA)

    def decode(self, prompts: list[list[int]], count: int) -> list[list[int]]:
        """Return the answers to several prompts at once."""
        how = Sampling(temperature=0.0, max_tokens=count, ignore_eos=True, drafts=False)
        return [list(each.result().ids) for each in [self.engine.submit(self.served, ids, how) for ids in prompts]]

    def under_grammar(self, prompt: list[int], count: int) -> int:
        """Return the number of tokens of an answer that keeps to the grammar."""
        how = Sampling(temperature=0.0, max_tokens=count, ignore_eos=True, grammar=self.GRAMMAR, drafts=False)
        return self.engine.submit(self.served, prompt, how).result().generated_tokens


def opened(path: Path, weights: str | None) -> Model:
    """The model, in the dtype that it is used in when nobody says otherwise."""
    return load(path, weights=weights, progress=False)


if __name__ == "__main__":
    serve(start)
