"""Attention by the kernels over pages of keys and values, for traced code. Only filled slots cost anything."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.kernels.products import DENSE, kernels_run
from langchain_gemma_jax.kernels.targets import ATTENTION, VACANT

LANES = 16  # a multiple of this fills whole registers of every instruction set
ALL = 1 << 40  # a window that hides nothing

Pages = tuple[jax.Array, jax.Array]
"""Keys and values, each ``[page, kv_head, slot, head_dim]``; in int8, each head with its scale behind it."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Places:
    """Where the queries of each row stand in its context: int32 ``[row]`` each."""

    first: jax.Array  # the position of the first query
    count: jax.Array  # the number of queries that are no padding; the results of padding are zero
    until: jax.Array  # positions before it are seen even if they are later than a query's own; 0: none


def can_attend(head_dim: int, dtype: np.dtype[np.generic]) -> bool:
    """Return True if the kernels run here and support pages with such heads."""
    return head_dim % LANES == 0 and dtype.name in DENSE and kernels_run()


def attend(
    queries: jax.Array,
    places: Places,
    table: jax.Array,
    pages: Pages,
    *,
    window: int | None,
    cap: float | None,
) -> jax.Array:
    """Attend from queries ``[row, token, head, head_dim]``: float32 ``[row, token, heads * head_dim]``.

    A query sees the positions up to its own, at most ``window`` of them. Position p of a row is in the page
    ``table[row, p // slots mod entries]``. A row's results depend neither on the other rows nor on where pages lie.
    """
    call = jax.ffi.ffi_call(ATTENTION, _result_of(queries))
    mixed: jax.Array = call(*_inputs(queries, places, table), *pages, **_how(window, cap))
    return mixed


def write_and_attend(
    queries: jax.Array,
    places: Places,
    table: jax.Array,
    pages: Pages,
    new: Pages,
    *,
    window: int | None,
    cap: float | None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Write the chunk's keys and values ``[row, kv_head, token, head_dim]`` in place, and attend.

    Return what ``attend`` does, and the pages. Padding is not written.
    """
    same = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in pages)
    call = jax.ffi.ffi_call(ATTENTION, (_result_of(queries), *same), input_output_aliases={3: 1, 4: 2})
    stored = pages[0].dtype
    as_stored = (each.astype(jnp.float32 if stored == jnp.int8 else stored) for each in new)  # the kernels round
    mixed, keys, values = call(*_inputs(queries, places, table), *pages, *as_stored, **_how(window, cap))
    return mixed, keys, values


def vacant(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> jax.Array:
    """Return an array with any numbers. It takes memory as it is written to, and none before."""
    array: jax.Array = jax.ffi.ffi_call(VACANT, jax.ShapeDtypeStruct(shape, dtype), has_side_effect=True)()
    return array


def _result_of(queries: jax.Array) -> jax.ShapeDtypeStruct:
    rows, tokens, heads, head_dim = queries.shape
    return jax.ShapeDtypeStruct((rows, tokens, heads * head_dim), jnp.float32)


def _inputs(queries: jax.Array, places: Places, table: jax.Array) -> tuple[jax.Array, ...]:
    numbers = jnp.stack([places.first, places.count, places.until], axis=1)
    return queries.astype(jnp.float32), numbers.astype(jnp.int32), table.astype(jnp.int32)


def _how(window: int | None, cap: float | None) -> dict[str, np.generic]:
    return {"window": np.int64(ALL if window is None else window), "cap": np.float32(0.0 if cap is None else cap)}
