"""Products with a packed matrix, tile by tile: a tile of outputs is unpacked and multiplied, then the next one.

So a tile stays in the processor's cache, and the memory of a product does not grow with the matrix.

Every matrix has at least two tiles, and the buffer of the sums is derived from the rows. Neither is for speed: a
compiler may compute early what depends on weights alone, and one unpacked the matrices of all layers first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.weights import Plan

FEW_TILE, MORE_TILE = 1 << 20, 8 << 20  # bytes of an unpacked tile: fits in a cache; pays off in a larger product

MatrixParts: TypeAlias = tuple[Any, ...]
"""The arrays of a matrix, outputs first."""


def in_tiles(
    parts: MatrixParts, rows: jax.Array, dtype: str, multiplied: Callable[[MatrixParts, jax.Array], jax.Array]
) -> jax.Array:
    """Return the product of rows with a matrix: float32 ``[out, row]``.

    ``multiplied`` returns the product of some outputs' parts with all rows; ``dtype`` is that of unpacked numbers.
    """
    outputs, count = parts[0].shape[0], rows.shape[0]
    room = FEW_TILE if count <= Plan.FEW_ROWS else MORE_TILE
    tile = max(1, min(room // (rows.shape[1] * jnp.dtype(dtype).itemsize), -(-outputs // 2)))
    padded = jnp.concatenate([rows, rows]) if count == 1 else rows  # one row can be far slower than two

    def one_tile(index: jax.Array, out: jax.Array) -> jax.Array:
        first = jnp.minimum(index * tile, outputs - tile)  # the last tile may overlap the one before it
        some = tuple(jax.lax.dynamic_slice_in_dim(part, first, tile) for part in parts)
        return jax.lax.dynamic_update_slice(out, multiplied(some, padded), (first, jnp.zeros_like(first)))

    empty = jnp.broadcast_to(padded[:1, 0].astype(jnp.float32), (outputs, padded.shape[0]))
    products: jax.Array = jax.lax.fori_loop(0, -(-outputs // tile), one_tile, empty)
    return products[:, :count]
