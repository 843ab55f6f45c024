"""The two small functions that every block uses."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def rms_norm(x: jax.Array, scale: jax.Array | None, eps: float) -> jax.Array:
    """``x`` over its root mean square, times ``scale`` (the factor itself, whatever a checkpoint stored)."""
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)
    return normed if scale is None else normed * scale.reshape((1,) * (x.ndim - 1) + scale.shape)


def soft_cap(x: jax.Array, cap: float | None) -> jax.Array:
    """Squash ``x`` smoothly into (-cap, cap)."""
    return x if cap is None else jnp.tanh(x / cap) * cap
