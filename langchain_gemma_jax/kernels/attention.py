"""Attention by the kernels, for traced code. Its cost depends on the filled slots, not on the cache's capacity."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.products import DENSE, kernels_run
from langchain_gemma_jax.kernels.targets import ATTENTION

LANES = 16  # a multiple of this fills whole registers of every instruction set
ALL = 1 << 40  # a window that hides nothing


def can_attend(head_dim: int, dtype: np.dtype[np.generic]) -> bool:
    """Return True if the kernels run here and support caches with such heads."""
    return head_dim % LANES == 0 and dtype.name in DENSE and kernels_run()


def attend(
    queries: jax.Array,
    first: jax.Array,
    split: jax.Array,
    caches: Sequence[tuple[jax.Array, jax.Array]],
    *,
    appended: int,
    window: int | None,
    cap: float | None,
) -> jax.Array:
    """Attend from queries ``[row, token, head, head_dim]``: float32 ``[row, token, heads * head_dim]``.

    A row's queries are at positions ``first [row]`` and on, and see positions up to their own, at most ``window`` of
    them. ``caches`` are keys and values ``[row, kv_head, slot, head_dim]``, each of an equal share of the rows in
    order. The last ``appended`` slots hold the positions from ``split [row]`` on; the others are a ring of the
    positions before it, or of all positions if ``appended`` is 0. A row's results do not depend on the other rows.
    """
    rows, tokens, heads, head_dim = queries.shape
    out = jax.ShapeDtypeStruct((rows, tokens, heads * head_dim), jnp.float32)
    arrays = [array for cache in caches for array in cache]
    mixed: jax.Array = jax.ffi.ffi_call(ATTENTION, out)(
        queries.astype(jnp.float32),
        first.astype(jnp.int32),
        split.astype(jnp.int32),
        *arrays,
        window=np.int64(ALL if window is None else window),
        cap=np.float32(0.0 if cap is None else cap),
        behind=np.int64(appended),
    )
    return mixed
