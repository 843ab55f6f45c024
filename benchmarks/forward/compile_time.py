"""Time how long the programs of a model take to compile, cold: traced, lowered and compiled from shapes alone.

Neither weights nor a cache are allocated, so a model that fits in no memory can be measured too. A
process of its own each time, without JAX's persistent cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import jax

from benchmarks.running.serve import Answer, Job, serve
from benchmarks.work.bare_programs import bare_shape
from benchmarks.work.workload import CAPACITY, PROMPT
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.seams.placement import placement_of


def compile_seconds(model: str, dtype: str, prompt: int = PROMPT, capacity: int = CAPACITY) -> dict[str, float]:
    """Seconds for each program of a published size, one row: what a first prompt and a first step have to wait for."""
    config, recipe, where = published(model), choose_recipe(dtype), placement_of(None)
    shape = bare_shape(Gemma(config), recipe, capacity, chunk=prompt)
    programs, signatures = Programs(shape, where), Signatures(shape, where)

    def compiled(key: ProgramKey) -> object:
        return lower(programs, signatures, key).compile()

    keys: dict[str, ProgramKey] = {
        "prefill": ("read", prompt, capacity),
        "pick": ("pick", 1),
        "decode": ("step", 1, capacity),
    }
    return {name: _seconds(partial(compiled, key)) for name, key in keys.items()}


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """A round is one compilation: JAX remembers what it compiled, so a process has one round in it."""
    choose_recipe(job.dtype)  # a probe, if the machine is new: paid once a machine, not once a compilation
    return {"version": f"jax {jax.__version__}"}, lambda: compile_seconds(job.model, job.dtype)


if __name__ == "__main__":
    serve(start)
