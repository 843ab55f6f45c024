"""How long the two programs of a model take to compile, cold: traced, lowered and compiled from shapes alone.

Neither weights nor a cache are allocated, so a model that fits in no memory can be measured too. A
process of its own each time, without JAX's persistent cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from benchmarks.serve import Answer, Job, serve
from benchmarks.workload import CAPACITY, PROMPT
from langchain_gemma_jax.models.abstract import abstract
from langchain_gemma_jax.models.catalog import published
from langchain_gemma_jax.models.kv_cache import allocate
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.steps import greedy_step, read


def compile_seconds(model: str, dtype: str, prompt: int = PROMPT, capacity: int = CAPACITY) -> dict[str, float]:
    """Seconds for each program of a published size, one row."""
    config, recipe = published(model), choose_recipe(dtype)
    params = jax.tree.map(
        lambda spec: jax.ShapeDtypeStruct(spec.stored_shape, jnp.dtype(spec.dtype)),
        abstract(config, dtype, recipe.layout),
    )
    cache = jax.eval_shape(lambda: allocate(config, rows=1, capacity=capacity, dtype=dtype))
    row, tokens = jax.ShapeDtypeStruct((1,), jnp.int32), jax.ShapeDtypeStruct((1, prompt), jnp.int32)
    return {
        "prefill": _seconds(lambda: read.lower(params, config, recipe, tokens, row, row, cache).compile()),
        "decode": _seconds(lambda: greedy_step.lower(params, config, recipe, row, row, cache).compile()),
    }


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
