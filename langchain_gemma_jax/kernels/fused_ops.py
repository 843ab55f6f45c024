"""The fused operations between a layer's products, by the kernels, for traced code: norms, residuals, heads, gates.

They are computed row by row, always in the same order: a token has the same bits alone and in a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.kernels.targets import fused_op

LANES = 16  # a multiple of this fills whole registers of every instruction set


def can_norm(width: int) -> bool:
    """Return True if the kernels run here and support rows of ``width`` numbers."""
    return width > 0 and width % LANES == 0 and kernels_run()


def can_turn(head_dim: int) -> bool:
    """Return True if the kernels run here and support heads of ``head_dim`` numbers."""
    return head_dim > 0 and head_dim % (2 * LANES) == 0 and kernels_run()


def norm(x: jax.Array, scale: jax.Array | None, eps: float) -> jax.Array:
    """Return ``x [..., n]`` over its root mean square, times ``scale [n]``: float32."""
    (normed,) = _call("norm", [x.shape], [x, scale], eps=eps)
    return normed


def join(
    x: jax.Array, h: jax.Array, post: jax.Array | None, scale: jax.Array, eps: float
) -> tuple[jax.Array, jax.Array]:
    """Return ``x + h``, with ``h`` normed first if ``post`` gives its scale; and that sum, normed: float32 both."""
    total, normed = _call("join", [x.shape, x.shape], [x, h, scale, post], eps=eps)
    return total, normed


def gated(gate_up: jax.Array) -> jax.Array:
    """Return ``gelu(gate) * up`` of ``[..., 2 * n]``: float32 ``[..., n]``."""
    (result,) = _call("gated", [(*gate_up.shape[:-1], gate_up.shape[-1] // 2)], [gate_up])
    return result


def heads(
    x: jax.Array,
    sin_cos: tuple[jax.Array, jax.Array],
    norms: tuple[jax.Array, jax.Array] | None,
    queries: int,
    pairs: int,
    *,
    value_norm: bool,
    eps: float,
    size: float,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Split a joint product into queries ``[row, token, head, dim]``, keys and values ``[row, head, token, dim]``.

    ``x [row, token, head, dim]`` has heads of queries, then of keys, then of values. Without heads of values, the
    values are the keys before their rotation. Queries and keys are normed with the scales ``norms`` and rotated by
    ``sin_cos [row, token, 1, dim / 2]``; queries are multiplied by ``size``.
    """
    rows, tokens, _, dim = x.shape
    kept = (rows, pairs, tokens, dim)
    given = [x, *sin_cos, *(norms or ())]
    results = _call(
        "heads", [(rows, tokens, queries, dim), kept, kept], given, eps=eps, size=size, value_norm=value_norm
    )
    return results[0], results[1], results[2]


def best(scores: jax.Array, valid: int) -> tuple[jax.Array, jax.Array]:
    """Return the largest of the first ``valid`` scores of each row ``[row, number]``, and its index: float32, int32.

    Of equal scores the first one is taken. For a row with a NaN anywhere, the result is NaN at index 0.
    """
    rows = scores.shape[:1]
    top, at = _call("best", [rows, rows], [scores], valid=valid)
    return top, at


def _call(
    name: str,
    shapes: list[tuple[int, ...]],
    arrays: list[jax.Array | None],
    *,
    eps: float = 0.0,
    size: float = 1.0,
    value_norm: bool = False,
    valid: int = 1,
) -> Sequence[jax.Array]:
    whole = 1 if name == "best" else len(shapes)
    made = [
        jax.ShapeDtypeStruct(shape, jnp.int32 if index >= whole else jnp.float32) for index, shape in enumerate(shapes)
    ]
    given = [array.astype(jnp.float32) for array in arrays if array is not None]
    results: Sequence[jax.Array] = jax.ffi.ffi_call(fused_op(name), made)(
        *given, eps=np.float32(eps), size=np.float32(size), value_norm=np.int64(value_norm), valid=np.int64(valid)
    )
    return results
