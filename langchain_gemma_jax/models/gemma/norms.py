"""Norms and caps that every block uses, by XLA or by the kernels, as the recipe chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels import fused_ops
from langchain_gemma_jax.models.seams.recipe import BetweenForm

Found = TypeVar("Found")

XLA, KERNEL = BetweenForm.XLA, BetweenForm.KERNEL


def rms_norm(x: jax.Array, scale: jax.Array | None, eps: float, form: BetweenForm = XLA) -> jax.Array:
    """Return ``x`` over its root mean square, times ``scale`` (the factor itself, with the norm's offset included)."""
    if form is KERNEL and x.size and fused_ops.can_norm(x.shape[-1]):
        given = (x,) if scale is None else (x, scale)
        return with_derivative(
            lambda x, scale=None: fused_ops.norm(x, scale, eps), lambda x, scale=None: rms_norm(x, scale, eps), *given
        )
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)
    return normed if scale is None else normed * scale.reshape((1,) * (x.ndim - 1) + scale.shape)


def add_and_norm(
    x: jax.Array, h: jax.Array, post: jax.Array | None, scale: jax.Array, eps: float, form: BetweenForm
) -> tuple[jax.Array, jax.Array]:
    """Return the residual ``x + h``, and its norm. ``h`` is normed first if ``post`` gives its scale."""
    if form is KERNEL and x.size and fused_ops.can_norm(x.shape[-1]):
        given = (x, h, scale) if post is None else (x, h, scale, post)
        return with_derivative(
            lambda x, h, scale, post=None: fused_ops.join(x, h, post, scale, eps),
            lambda x, h, scale, post=None: add_and_norm(x, h, post, scale, eps, XLA),
            *given,
        )
    x = x + (h if post is None else rms_norm(h, post, eps))
    return x, rms_norm(x, scale, eps)


def with_derivative(kernel: Callable[..., Found], plain: Callable[..., Found], *arrays: jax.Array) -> Found:
    """Return ``kernel(*arrays)``, with the derivative of the plain function that it replaces."""
    function = jax.custom_jvp(kernel)
    function.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
    return function(*arrays)


def soft_cap(x: jax.Array, cap: float | None) -> jax.Array:
    """Squash ``x`` smoothly into (-cap, cap)."""
    return x if cap is None else jnp.tanh(x / cap) * cap
