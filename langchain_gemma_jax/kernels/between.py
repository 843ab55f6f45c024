"""What lies between a layer's products, by the kernels, as traced code calls it: norms, residuals, heads, gates.

All of it is made row by row, in an order of its own: a token has the same bits alone and among others.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.products import kernels_run
from langchain_gemma_jax.kernels.targets import between

LANES = 16  # numbers come in whole registers of every instruction set


def can_norm(width: int) -> bool:
    """Return True if the kernels run here and take rows of so many numbers."""
    return width > 0 and width % LANES == 0 and kernels_run()


def can_turn(head_dim: int) -> bool:
    """Return True if the kernels run here and take heads of so many numbers."""
    return head_dim > 0 and head_dim % (2 * LANES) == 0 and kernels_run()


def norm(x: jax.Array, scale: jax.Array | None, eps: float) -> jax.Array:
    """``x [..., n]`` over its root mean square, times ``scale [n]``: float32."""
    (found,) = _call("norm", [x.shape], [x, scale], eps=eps)
    return found


def join(
    x: jax.Array, h: jax.Array, post: jax.Array | None, scale: jax.Array, eps: float
) -> tuple[jax.Array, jax.Array]:
    """``x + h``, with ``h`` normed first if ``post`` is its scale; and that sum, normed: float32 both."""
    total, normed = _call("join", [x.shape, x.shape], [x, h, scale, post], eps=eps)
    return total, normed


def gated(gate_up: jax.Array) -> jax.Array:
    """``gelu(gate) * up`` of ``[..., 2 * n]``: float32 ``[..., n]``."""
    (found,) = _call("gated", [(*gate_up.shape[:-1], gate_up.shape[-1] // 2)], [gate_up])
    return found


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
    """Queries ``[row, token, head, dim]``, keys and values ``[row, head, token, dim]`` of a joint product.

    ``x [row, token, head, dim]`` has heads of queries, then of keys, then of values; without the last, keys that
    are not turned are values.
    Heads of queries and keys are normed with the scales ``norms`` and turned by ``sin_cos [row, token, 1, dim / 2]``;
    queries are multiplied by ``size``.
    """
    rows, tokens, _, dim = x.shape
    kept = (rows, pairs, tokens, dim)
    given = [x, *sin_cos, *(norms or ())]
    found = _call("heads", [(rows, tokens, queries, dim), kept, kept], given, eps=eps, size=size, value_norm=value_norm)
    return found[0], found[1], found[2]


def best(scores: jax.Array, valid: int) -> tuple[jax.Array, jax.Array]:
    """The largest of the first ``valid`` scores of each row ``[row, number]``, and where it is first: float32, int32.

    A row with NaN anywhere has NaN, at 0.
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
    found: Sequence[jax.Array] = jax.ffi.ffi_call(between(name), made)(
        *given, eps=np.float32(eps), size=np.float32(size), value_norm=np.int64(value_norm), valid=np.int64(valid)
    )
    return found
