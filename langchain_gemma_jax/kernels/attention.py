"""Attention by the kernels, as traced code calls them: it costs what is there, whatever the cache has room for."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.products import DENSE, kernels_run
from langchain_gemma_jax.kernels.targets import ATTENTION

LANES = 16  # numbers of a head come in whole registers of every instruction set
ALL = 1 << 40  # a window that hides nothing


def can_attend(head_dim: int, dtype: np.dtype[np.generic]) -> bool:
    """Return True if the kernels run here and take caches of such heads."""
    return head_dim % LANES == 0 and dtype.name in DENSE and kernels_run()


def attend(
    queries: jax.Array,
    first: jax.Array,
    split: jax.Array,
    caches: Sequence[tuple[jax.Array, jax.Array]],
    *,
    behind: int,
    window: int | None,
    cap: float | None,
) -> jax.Array:
    """Mix the values that queries ``[row, token, head, head_dim]`` look at: float32 ``[row, token, heads * head_dim]``.

    A row's queries are at positions ``first [row]`` and on, and see those up to their own, ``window`` of them at most.
    ``caches`` are keys and values ``[row, kv_head, slot, head_dim]``, each of an equal share of the rows in order. The
    last ``behind`` slots hold the positions from ``split [row]`` on; the others are a ring of the positions before it,
    or of all if nothing is behind. A row's numbers are the same whatever the other rows are.
    """
    rows, tokens, heads, head_dim = queries.shape
    out = jax.ShapeDtypeStruct((rows, tokens, heads * head_dim), jnp.float32)
    arrays = [array for cache in caches for array in cache]
    found: jax.Array = jax.ffi.ffi_call(ATTENTION, out)(
        queries.astype(jnp.float32),
        first.astype(jnp.int32),
        split.astype(jnp.int32),
        *arrays,
        window=np.int64(ALL if window is None else window),
        cap=np.float32(0.0 if cap is None else cap),
        behind=np.int64(behind),
    )
    return found
