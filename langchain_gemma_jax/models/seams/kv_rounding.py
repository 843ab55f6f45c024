"""Keys and values in eight bits: turned, rounded, and with a scale for each head of each token.

A few numbers of a head are often far larger than the others, and rounding all of them by the largest one would lose the
small ones. So a head is multiplied by a Hadamard matrix first, which spreads each number over a whole block. The
matrix is its own inverse, and a product of two turned vectors is that of the vectors themselves. So queries are turned
as keys are, and what comes of turned values is turned back.

A block has the most numbers that are a power of two and divide the head: 256 of a head of 256, 32 of one of 96.

In memory, a token's head is ``head_dim`` numbers of eight bits and the four bytes of its scale, a float32.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.model_config import SCALE_BYTES

_MOST = 127.0  # the largest rounded number


def turned(x: jax.Array) -> jax.Array:
    """Return heads ``[..., head_dim]``, each block times its Hadamard matrix: float32. Twice is not at all."""
    block = x.shape[-1] & -x.shape[-1]
    if block == 1:
        return x.astype(jnp.float32)
    # A large Hadamard matrix is the product of two small ones, each along an axis of its own.
    inner = 1 << (block.bit_length() - 1) // 2
    blocks = x.astype(jnp.float32).reshape(*x.shape[:-1], -1, block // inner, inner)
    outer, inside = (jnp.asarray(_hadamard(size)) for size in (block // inner, inner))
    found = jnp.einsum("...oi,op,ij->...pj", blocks, outer, inside, precision=jax.lax.Precision.HIGHEST)
    return (found * np.float32(block**-0.5)).reshape(x.shape)


def rounded(x: jax.Array) -> jax.Array:
    """Return heads ``[..., head_dim]`` as they are stored: int8 ``[..., head_dim + 4]``. NaN stays NaN."""
    numbers = turned(x)
    largest = jnp.max(jnp.abs(numbers), axis=-1, keepdims=True)
    inverse = jnp.where(largest > 0, _MOST / largest, 0.0)
    codes = jnp.round(numbers * inverse).astype(jnp.int8)
    scales = jax.lax.bitcast_convert_type(largest / _MOST, jnp.int8).reshape(*x.shape[:-1], SCALE_BYTES)
    return jnp.concatenate([codes, scales], axis=-1)


def numbers_of(stored: jax.Array, dtype: str) -> jax.Array:
    """Return the turned numbers ``[..., head_dim]`` of stored heads ``[..., head_dim + 4]``."""
    codes, scales = stored[..., :-SCALE_BYTES], stored[..., -SCALE_BYTES:]
    sizes = jax.lax.bitcast_convert_type(scales, jnp.float32)[..., None]
    return (codes.astype(jnp.float32) * sizes).astype(dtype)


def _hadamard(size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the Hadamard matrix of a power of two: of ones, half of them negative.

    >>> _hadamard(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    found = np.ones((1, 1), np.float32)
    while len(found) < size:
        found = np.concatenate([np.tile(found, (1, 2)), np.concatenate([found, -found], axis=1)])
    return found
