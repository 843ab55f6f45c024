"""Products with a few rows by the kernels, as traced code calls them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels.targets import IN_BLOCKS, target

MOST_ROWS = 16
DENSE = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def can_multiply(rows: int, *, rounded: bool = False) -> bool:
    """Return True if the kernels run here and take so many rows: any number, of those that are rounded first."""
    return (1 <= rows <= MOST_ROWS or (rounded and rows > 0)) and kernels_run()


def kernels_run() -> bool:
    """Return True if the kernels run here."""
    if jax.default_backend() != "cpu":
        return False
    # Loaded by name: an edit to how libraries are found and checked leaves programs where they are, whose names hold
    # the text of all that this module imports. That kernels run is in their names by itself.
    library = import_module("langchain_gemma_jax.kernels.library")
    return bool(library.kernels().run)


def multiply(x: jax.Array, parts: Sequence[jax.Array], kind: str, *, rounded: bool = False) -> jax.Array:
    """``x [row, in]`` times a matrix of some kind, whose arrays begin ``[out, block]``: float32 ``[row, out]``.

    Activations are float32, and so are all sums. A row's numbers are the same whatever the other rows are. With
    ``rounded``, activations are rounded to eight bits first, in blocks of 32 with a scale each, for matrices in blocks;
    there may be any number of rows then.
    """
    out = jax.ShapeDtypeStruct((x.shape[0], parts[0].shape[0]), jnp.float32)
    found: jax.Array = jax.ffi.ffi_call(target(kind, rounded=rounded and kind in IN_BLOCKS), out)(
        x.astype(jnp.float32), *parts
    )
    return found


@jax.custom_jvp
def multiply_dense(x: jax.Array, weight: jax.Array) -> jax.Array:
    """``x [row, in]`` times a dense matrix ``[out, in]``, with derivatives as any product has them."""
    return multiply(x, (weight,), DENSE[weight.dtype.name])


@multiply_dense.defjvp
def _derivative(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x, weight), (dx, dweight) = primals, tangents
    by_x, by_weight = (
        jnp.einsum("mi,oi->mo", *pair, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
        for pair in ((dx, weight.astype(dx.dtype)), (x, dweight.astype(x.dtype)))
    )
    return multiply_dense(x, weight), by_x + by_weight
