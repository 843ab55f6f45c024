"""Rotary position embedding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.model_config import Rope


def rotation(rope: Rope, head_dim: int, positions: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return sine and cosine for ``positions [row, token]``, each ``[row, token, 1, head_dim / 2]``.

    One pair is valid for all layers with the same rope and head size.
    """
    angles = positions[..., None].astype(jnp.float32) * jnp.asarray(_frequencies(rope, head_dim))[None, None]
    return jnp.sin(angles)[:, :, None], jnp.cos(angles)[:, :, None]


def _frequencies(rope: Rope, head_dim: int) -> np.ndarray:
    half = head_dim // 2
    turning = int(rope.rotated_share * head_dim // 2)
    # The exponent runs over the whole head, so a partial rope rotates the fast dimensions and not the slow ones.
    exponents = np.arange(0, 2 * turning, 2, dtype=np.float32) / np.float32(head_dim)
    frequencies = np.zeros(half, np.float32)
    frequencies[:turning] = 1.0 / np.float32(rope.theta) ** exponents
    return frequencies / np.float32(rope.position_scale)


def rotate(x: jax.Array, sin_cos: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Rotate ``x [row, token, head, head_dim]``: the first half of a head against the second."""
    sin, cos = sin_cos
    first, second = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
