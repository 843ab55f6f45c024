"""The activations that matrices in blocks are multiplied by: as they are, or rounded to eight bits first.

Rounding is a part of the computation, by kernels and by XLA alike, but only kernels are faster with it. A number near
the middle between two steps is rounded up or down by its last bit, and the next rounding amplifies that. So with
rounding, kernels take products of any number of rows, and a token has the same keys and values to the bit whether it
was read in a long chunk, generated alone, or drafted. XLA's products have other last bits in chunks of other lengths.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.errors import InputError

ACTIVATIONS = ("float32", "int8")
BLOCK = 32  # numbers with a scale of their own
_STEP = np.float32(1) / np.float32(127)  # of the largest number of a block
_LEAST = np.float32(1e-37)  # a scale whose inverse is a number


def checked_activations(asked: str | None) -> str | None:
    """Return the argument ``activations`` after a check.

    Raises:
        InputError: it is not one of ``ACTIVATIONS``.
    """
    if asked is not None and asked not in ACTIVATIONS:
        raise InputError(f"activations: expected one of {', '.join(ACTIVATIONS)} or None, found {asked!r}.")
    return asked


def in_eight_bits(rows: jax.Array) -> jax.Array:
    """Round rows ``[row, in]``: each 32 numbers to 255 steps, scaled to the largest of them. The result is float32."""
    blocks = rows.astype(jnp.float32).reshape(*rows.shape[:-1], -1, BLOCK)
    scales = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) * _STEP
    inverse = jnp.where(scales > _LEAST, jnp.float32(1) / scales, jnp.float32(0))
    return (jnp.round(blocks * inverse) * scales).reshape(rows.shape)
