"""How long the programs of a model take to compile, cold: traced, lowered and compiled from shapes alone.

Neither weights nor a cache are allocated, so a model that fits in no memory can be measured too. A
process of its own each time, without JAX's persistent cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.serve import Answer, Job, serve
from benchmarks.workload import CAPACITY, PROMPT
from langchain_gemma_jax.engine.knobs import knobs
from langchain_gemma_jax.engine.kv import empty
from langchain_gemma_jax.engine.programs import Programs, RowKnobs, Shape
from langchain_gemma_jax.models.abstract import abstract
from langchain_gemma_jax.models.catalog import published
from langchain_gemma_jax.models.recipes import choose_recipe


def compile_seconds(model: str, dtype: str, prompt: int = PROMPT, capacity: int = CAPACITY) -> dict[str, float]:
    """Seconds for each program of a published size, one row: what a first prompt and a first step have to wait for."""
    config, recipe = published(model), choose_recipe(dtype)
    programs = Programs(Shape(config, recipe, config.vocab_size, capacity), jax.local_devices()[0])
    params = jax.tree.map(
        lambda spec: jax.ShapeDtypeStruct(spec.stored_shape, jnp.dtype(spec.dtype)),
        abstract(config, dtype, recipe.layout),
    )
    sequence = jax.eval_shape(lambda: empty(config, capacity, capacity, dtype))
    words = np.zeros(-(-config.vocab_size // 32), np.uint32)
    row = jax.eval_shape(lambda: RowKnobs(knobs(seed=0, prompt_length=0), words))
    one, tokens = jax.ShapeDtypeStruct((1,), jnp.int32), jax.ShapeDtypeStruct((1, prompt), jnp.int32)
    hidden = jax.ShapeDtypeStruct((1, config.width), jnp.float32)
    return {
        "prefill": _seconds(lambda: programs.read.lower(params, tokens, one, one, sequence).compile()),
        "pick": _seconds(lambda: programs.pick.lower(params, hidden, one, (sequence.ids,), (row,)).compile()),
        "decode": _seconds(lambda: programs.step.lower(params, one, one, (sequence,), (row,)).compile()),
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
