"""Time how fast this machine reads memory: the best of several ways to read a buffer that no cache holds.

A decoded token reads every weight once, so bytes of weights ÷ this is the least time it can take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.running.serve import Answer, Job, serve

ROWS, COLUMNS = 524288, 512  # 1 GiB in float32
REPEATS = 5


def start(job: Job) -> tuple[Answer, Callable[[], Answer]]:
    """Fill the buffer; give what a round of reading it is."""
    buffer = np.ones((ROWS, COLUMNS), np.float32)
    parts = np.array_split(buffer.reshape(-1), job.threads)
    pool = ThreadPoolExecutor(job.threads)
    # numpy: BLAS's dot product of each part with itself, a thread a part (in a process with one BLAS thread).
    # XLA: one row times the buffer as a matrix, and times the same bytes as a matrix of bfloat16.
    ways: dict[str, Callable[[], object]] = {
        "numpy": lambda: list(pool.map(lambda part: np.dot(part, part), parts)),
        "XLA float32": one_row_product(jnp.asarray(buffer)),
        "XLA bfloat16": one_row_product(jnp.ones((ROWS * 2, COLUMNS), jnp.bfloat16)),
    }
    for way in ways.values():
        way()
    return {"bytes": buffer.nbytes}, lambda: {name: buffer.nbytes / best_time(way) for name, way in ways.items()}


def one_row_product(matrix: jax.Array) -> Callable[[], object]:
    """Something that multiplies one row by the matrix and waits."""
    row = jnp.ones((1, matrix.shape[1]), matrix.dtype)
    product = jax.jit(lambda x, weight: jnp.einsum("mi,oi->mo", x, weight, preferred_element_type=jnp.float32))
    return lambda: product(row, matrix).block_until_ready()


def best_time(way: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    took = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        way()
        took.append(time.perf_counter() - began)
    return min(took)


if __name__ == "__main__":
    serve(start)
