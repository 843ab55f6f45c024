"""Products with weights: a dense matrix in the form that the recipe chose, a packed one by its own ``product``."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels.products import can_multiply, multiply_dense
from langchain_gemma_jax.models.seams.weights import Form, Packed, Plan, Weight


def linear(x: jax.Array, weight: Weight, plan: Plan, real: jax.Array | None = None) -> jax.Array:
    """Return ``x @ weight`` for activations ``[..., in]`` and a logical ``(out, in)`` matrix: float32 ``[..., out]``.

    Products with a dense matrix are taken in its dtype and summed in float32. ``real``, an int32, is the number of
    rows before the padding: kernels skip the padding, and its outputs have no meaning.
    """
    if isinstance(weight, Packed):
        return weight.product(x, plan, real)
    rows = x.reshape(-1, x.shape[-1]).astype(weight.dtype)
    count = rows.shape[0]
    form = plan.form(count)
    if form is Form.KERNEL and plan.out_first and can_multiply(count, dense=True):
        out = multiply_dense(rows, weight, real)
    elif form is Form.WEIGHTS_FIRST and count > Plan.EACH_UP_TO:
        out = _turned_product(rows, weight, plan)
    elif form in {Form.EACH_ROW, Form.WEIGHTS_FIRST} and count > 1:
        out = jnp.concatenate([_product(rows[i : i + 1], weight, plan) for i in range(count)])
    elif form is Form.PAD_ROWS and count == 1:
        out = _product(jnp.concatenate([rows, rows]), weight, plan)[:1]
    else:
        out = _product(rows, weight, plan)
    return out.reshape(*x.shape[:-1], out.shape[-1])


def used_rows(alive: jax.Array) -> jax.Array:
    """Return the number of rows up to the last one that is used: ``real`` for rows of one token each."""
    return jnp.max(jnp.where(alive > 0, 1 + jnp.arange(alive.shape[0]), 0))


def _turned_product(rows: jax.Array, weight: jax.Array, plan: Plan) -> jax.Array:
    # XLA:CPU packs its right operand before it multiplies, which takes longer than the product if that is the large
    # one. The barrier keeps XLA from turning the product back.
    subscripts = "oi,mi->om" if plan.out_first else "io,mi->om"
    precision = jax.lax.Precision.HIGHEST if weight.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    out = jnp.einsum(subscripts, weight, rows, precision=precision, preferred_element_type=jnp.float32)
    turned: jax.Array = jax.lax.optimization_barrier(out)
    return turned.T


def _product(rows: jax.Array, weight: jax.Array, plan: Plan) -> jax.Array:
    # Float32 weights mean that the caller wants float32 results, also where hardware would round first.
    precision = jax.lax.Precision.HIGHEST if weight.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    subscripts = "mi,oi->mo" if plan.out_first else "mi,io->mo"
    return jnp.einsum(subscripts, rows, weight, precision=precision, preferred_element_type=jnp.float32)
