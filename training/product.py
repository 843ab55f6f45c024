"""The product of activations with a matrix in bfloat16, forwards and backwards.

It keeps what a processor is quick at: each of the three products sums over what lies side by side in memory, or
over rows of a matrix that lies so. The gradient of the matrix would sum over tokens, which lie far apart, so
what it is made of is turned first.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

_LOW = jnp.bfloat16


def product(x: jax.Array, weight: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """``x [..., in]`` times a matrix ``[out, in]``, taken in ``dtype`` and summed in float32."""
    return _low(x, weight) if dtype == _LOW else jnp.einsum("...i,oi->...o", x, weight)


@jax.custom_vjp
def _low(x: jax.Array, weight: jax.Array) -> jax.Array:
    return _forwards(x, weight)[0]


def _forwards(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    x, weight = x.astype(_LOW), weight.astype(_LOW)
    return jnp.einsum("...i,oi->...o", x, weight, preferred_element_type=jnp.float32), (x, weight)


def _backwards(kept: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, weight = kept
    gradient = gradient.astype(_LOW)
    of_x = jnp.einsum("...o,oi->...i", gradient, weight, preferred_element_type=jnp.float32)
    of_weight = jnp.einsum(
        "on,ni->oi", _turned(gradient), x.reshape(-1, x.shape[-1]), preferred_element_type=jnp.float32
    )
    return of_x, of_weight


_low.defvjp(_forwards, _backwards)


def _turned(x: jax.Array) -> jax.Array:
    """``[..., in]`` as ``[in, ...]``, and lying so in memory."""
    return lying(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).T)


def lying(x: jax.Array) -> jax.Array:
    """The same, lying in memory in the order of its axes; else what is turned is turned again in each use."""
    made: jax.Array = with_layout_constraint(x, Layout(tuple(range(x.ndim))))
    return made
