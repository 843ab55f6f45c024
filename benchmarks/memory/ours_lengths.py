"""Measure this package on one conversation that grows to a very long one, with keys and values of either kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jax

from benchmarks.engine.engine_work import Talking
from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.context_lengths import ROOM, time_lengths
from langchain_gemma_jax import configure, engine
from langchain_gemma_jax.models.loading.load import load


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Load and compile; a round is the whole conversation. ``job.dtype``: "int8" rounds keys and values."""
    path, text = Path(job.folder, job.model), json.loads(Path(job.prompt).read_text())
    most = max(job.lengths) + ROOM
    configure(drafts=False, max_context=most)
    model = load(path, progress=False, cache_dtype="int8" if job.dtype == "int8" else None)
    running = engine()
    served = running.serve(model)
    running.warmup(served, max_context=most)

    def held() -> int:
        return running.models()[0].kv

    def run() -> Answer:
        return time_lengths(Talking(running, served, "long", drafts=False), text, job.lengths, held)

    return {"version": f"jax {jax.__version__}", "weight_bytes": model.nbytes}, run


if __name__ == "__main__":
    serve(start)
