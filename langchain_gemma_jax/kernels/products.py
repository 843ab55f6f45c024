"""Products with a few rows by the kernels, for traced code."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels.targets import IN_BLOCKS, target

MOST_ROWS = 16  # of activations that are not rounded, with a matrix in blocks
DENSE = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def can_multiply(rows: int, *, dense: bool = False, rounded: bool = False) -> bool:
    """Return True if the kernels run here and support this number of rows: any for a dense matrix, or with rounding."""
    return (1 <= rows <= MOST_ROWS or ((dense or rounded) and rows > 0)) and kernels_run()


def kernels_run() -> bool:
    """Return True if the kernels run here."""
    if jax.default_backend() != "cpu":
        return False
    # Imported by name: a compiled program's name holds the text of all modules that this one imports, and an edit to
    # ``library.py`` should not compile all programs again. Whether kernels run is a separate part of the name.
    library = import_module("langchain_gemma_jax.kernels.library")
    return bool(library.kernels().run)


def multiply(
    x: jax.Array, parts: Sequence[jax.Array], kind: str, *, rounded: bool = False, real: jax.Array | None = None
) -> jax.Array:
    """Return ``x [row, in]`` times a matrix of a ``kind``, whose arrays begin ``[out, block]``: float32 ``[row, out]``.

    Activations and all sums are float32. A row's results do not depend on the other rows. With ``rounded``, activations
    are rounded to eight bits first, in blocks of 32 with a scale each, for matrices in blocks; then there may be any
    number of rows. ``real``, one int32, is the number of rows before the padding: padding takes no time, and its
    results are zeros.
    """
    out = jax.ShapeDtypeStruct((x.shape[0], parts[0].shape[0]), jnp.float32)
    products: jax.Array = jax.ffi.ffi_call(target(kind, rounded=rounded and kind in IN_BLOCKS), out)(
        x.astype(jnp.float32), *parts, *(() if real is None else (real,))
    )
    return products


@jax.custom_jvp
def multiply_dense(x: jax.Array, weight: jax.Array, real: jax.Array | None = None) -> jax.Array:
    """Return ``x [row, in]`` times a dense matrix ``[out, in]``. It can be differentiated."""
    return multiply(x, (weight,), DENSE[weight.dtype.name], real=real)


@multiply_dense.defjvp
def _derivative(
    primals: tuple[jax.Array, jax.Array, jax.Array | None], tangents: tuple[jax.Array, jax.Array, object]
) -> tuple[jax.Array, jax.Array]:
    (x, weight, real), (dx, dweight, _) = primals, tangents
    by_x, by_weight = (
        jnp.einsum("mi,oi->mo", *pair, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
        for pair in ((dx, weight.astype(dx.dtype)), (x, dweight.astype(x.dtype)))
    )
    change = by_x + by_weight
    if real is not None:
        change = jnp.where(jnp.arange(x.shape[0])[:, None] < real, change, 0)
    return multiply_dense(x, weight, real), change
