"""Measurement of the operations between products in a decode step: XLA or the kernels, whichever is faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.fused_ops import gated, join
from langchain_gemma_jax.models.seams.recipe import BetweenForm

WIDTH, TIMES = 1024, 2  # numbers of one token, and repetitions, each like half a layer
SOMEWHAT = 0.95  # as for products
ENOUGH = 30  # runs

BetweenTimer: TypeAlias = Callable[[BetweenForm], float]
"""Returns the seconds that a way takes."""


def probe_between(timer: BetweenTimer | None = None) -> BetweenForm:
    """Return the faster way on the default device, where kernels run. Two small programs are compiled for it."""
    timer = timer or _seconds
    kernel, xla = BetweenForm.KERNEL, BetweenForm.XLA
    return kernel if timer(kernel) < SOMEWHAT * timer(xla) else xla


def _seconds(form: BetweenForm) -> float:
    # Explicit transfers: the caller may have disallowed implicit ones.
    x, scale = jax.device_put(np.ones((1, WIDTH), np.float32)), jax.device_put(np.ones(WIDTH, np.float32))
    program = jax.jit(_by_kernel if form is BetweenForm.KERNEL else _by_xla).lower(x, scale).compile()
    took = []
    for _ in range(ENOUGH):
        began = time.perf_counter()
        jax.block_until_ready(program(x, scale))
        took.append(time.perf_counter() - began)
    return min(took)


def _by_kernel(x: jax.Array, scale: jax.Array) -> jax.Array:
    for _ in range(TIMES):
        x, h = join(x, x, scale, scale, 1e-6)
        x = gated(jax.lax.optimization_barrier(jnp.concatenate([x, h], axis=-1)))
    return x


def _by_xla(x: jax.Array, scale: jax.Array) -> jax.Array:
    def normed(x: jax.Array) -> jax.Array:
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale[None]

    for _ in range(TIMES):
        x = x + normed(x)
        both = jax.lax.optimization_barrier(jnp.concatenate([x, normed(x)], axis=-1))
        gate, up = jnp.split(both, 2, axis=-1)
        x = jax.nn.gelu(gate, approximate=True) * up
    return x
