"""Measurement of the fastest way to attend: that of the forward pass, over a made-up cache that is half full."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.attention import attend
from langchain_gemma_jax.models.recipes.probe import OutOfTimeError
from langchain_gemma_jax.models.seams.recipe import Attention, AttentionForm

FEW, MANY = 1, 256  # tokens
SLOTS = {FEW: 4096, MANY: 1024}
HEADS, HEAD_DIM = 4, 256
BUDGET_SECONDS = 0.6
SOMEWHAT = 0.95  # as for products
ENOUGH = 4  # runs

AttentionTimer: TypeAlias = Callable[[AttentionForm, int], float]
"""Returns the seconds that a way takes for a number of tokens. Raises ``OutOfTimeError``."""


def probe_attention(
    dtype: str, timer: AttentionTimer | None = None, budget: float = BUDGET_SECONDS, *, kernels_are_fast: bool
) -> tuple[Attention, bool]:
    """Return the fastest ways on the default device, where kernels run, and True if there was time to measure.

    When the time is up, kernels are used if they are known to be fast.
    """
    timer = timer or _stopwatch(dtype, budget)
    kernel, products = AttentionForm.KERNEL, AttentionForm.PRODUCTS

    def better(tokens: int) -> AttentionForm:
        return kernel if timer(kernel, tokens) < SOMEWHAT * timer(products, tokens) else products

    try:
        return Attention(better(FEW), better(MANY)), True
    except OutOfTimeError:
        return (Attention(kernel, kernel) if kernels_are_fast else Attention()), False


def _stopwatch(dtype: str, budget: float) -> AttentionTimer:
    deadline = time.perf_counter() + budget

    def measure(form: AttentionForm, tokens: int) -> float:
        if time.perf_counter() > deadline:
            raise OutOfTimeError
        # Explicit transfers: the caller may have disallowed implicit ones.
        queries = jax.device_put(np.ones((1, tokens, HEADS, HEAD_DIM), np.float32))
        cache = jax.device_put(np.ones((1, 1, SLOTS[tokens], HEAD_DIM), jnp.dtype(dtype)))
        start = jax.device_put(np.full(1, SLOTS[tokens] // 2, np.int32))
        one = jax.jit(_by_kernel if form is AttentionForm.KERNEL else _by_products)
        program = one.lower(queries, start, cache, cache).compile()
        took = []
        for _ in range(ENOUGH):
            began = time.perf_counter()
            jax.block_until_ready(program(queries, start, cache, cache))
            took.append(time.perf_counter() - began)
        return min(took)

    return measure


def _by_kernel(queries: jax.Array, start: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    return attend(queries, start, start, [(keys, values)], appended=0, window=None, cap=None)


def _by_products(queries: jax.Array, start: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
    exact = jax.lax.Precision.HIGHEST if keys.dtype == np.float32 else jax.lax.Precision.DEFAULT
    tokens = queries.shape[1]
    rows = queries[0].swapaxes(0, 1).reshape(-1, HEAD_DIM).astype(keys.dtype)
    at = jnp.tile(start[0] + jnp.arange(tokens), HEADS)
    visible = jnp.arange(keys.shape[2])[None, :] <= at[:, None]
    scores = jnp.einsum("qd,sd->qs", rows, keys[0, 0], precision=exact, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(jnp.where(visible, scores, jnp.finfo(jnp.float32).min), axis=-1).astype(values.dtype)
    return jnp.einsum("qs,sd->qd", shares, values[0, 0], precision=exact, preferred_element_type=jnp.float32)
