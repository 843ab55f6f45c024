"""Three complaints, measured of this package: the file as it is, through its engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import jax

from benchmarks.complaints.complaints_work import CAPACITY, serve_reader
from benchmarks.running.serve import Answer, Job
from langchain_gemma_jax import Ladders, Sampling, configure, engine

NAMES = count()


class Ours:
    """The process's engine with one model, warm for contexts up to CAPACITY, as `gemma-jax warmup` leaves it."""

    def __init__(self, job: Job) -> None:
        self._served = engine().load(str(Path(job.folder, job.model)))
        engine().warmup(self._served, max_context=CAPACITY)
        self.facts: Answer = {"version": f"jax {jax.__version__}"}
        self.forget()

    def forget(self) -> None:
        self._scope = f"conversation {next(NAMES)}"  # another one's prefixes are never matched

    def first(self, context: Sequence[int]) -> int:
        asked = Sampling(max_tokens=1, temperature=0.0, ignore_eos=True)
        return engine().submit(self._served, context, asked, scope=self._scope).result().ids[0]


def ready(job: Job) -> None:
    """Have JAX begin, whose runtime is no part of what a model takes."""
    configure(max_context=CAPACITY, drafts=False, ladders=Ladders(rows=(1,)))
    jax.numpy.zeros(job.threads).block_until_ready()


if __name__ == "__main__":
    serve_reader(ready, Ours)
