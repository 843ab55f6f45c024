"""What matrices in blocks are multiplied by: activations as they are, or rounded to eight bits first.

Rounding is a part of what a model computes, whoever computes it; only kernels are faster for it. A number in the middle
between two steps goes to one side or the other by its last bit, and what comes of that is met by the next rounding: so
kernels take products of any number of rows here, and a token has the same keys and values to the bit whether it was
read in a long chunk, written alone, or drafted. XLA's products, which give other last bits, would not be reuse.
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
    """What was asked for, if there is such a thing.

    Raises:
        InputError: there is not.
    """
    if asked is not None and asked not in ACTIVATIONS:
        raise InputError(f"activations: expected one of {', '.join(ACTIVATIONS)} or None, found {asked!r}.")
    return asked


def in_eight_bits(rows: jax.Array) -> jax.Array:
    """Rows ``[row, in]``, each 32 numbers rounded to 255 steps that reach to the largest of them: still float32."""
    blocks = rows.astype(jnp.float32).reshape(*rows.shape[:-1], -1, BLOCK)
    scales = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) * _STEP
    inverse = jnp.where(scales > _LEAST, jnp.float32(1) / scales, jnp.float32(0))
    return (jnp.round(blocks * inverse) * scales).reshape(rows.shape)
