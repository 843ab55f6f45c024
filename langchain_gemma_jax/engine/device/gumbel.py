"""Random numbers that are a function of (seed, position, token id) alone.

A token is drawn by taking the largest of score + Gumbel noise. Each id has its own noise, so the draw does not depend
on the batch, on the way it was computed, or on which other ids can be drawn.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

# The float32 just below 1: the largest v for which log(1 - v) is finite.
BELOW_ONE = 1 - 2.0**-24


def key_at(seed: jax.Array, position: jax.Array) -> jax.Array:
    """Return the key, uint32 [2], of the token at a position: a Threefry of both, so neighbours are independent."""
    key = jax.random.wrap_key_data(seed, impl="threefry2x32")
    return jax.random.key_data(jax.random.fold_in(key, position))


def gumbel(key: jax.Array, ids: jax.Array) -> jax.Array:
    """Return standard Gumbel noise for token ids, float32 in their shape.

    The ids are hashed with both words of the key: on a CPU, a Threefry of each id would take longer than the rest of a
    draw from the whole vocabulary. The uniform number is small where the noise is large, so its 32 bits resolve the
    upper tail, which decides the draw, to 2**-33.
    """
    bits = _mixed(_mixed(ids.astype(jnp.uint32) + key[0]) ^ key[1])
    uniform = jnp.minimum((bits.astype(jnp.float32) + 0.5) * 2.0**-32, BELOW_ONE)
    return -jnp.log(-jnp.log1p(-uniform))


def _mixed(bits: jax.Array) -> jax.Array:
    """Mix bits: a bijection of 32 bits in which each input bit flips each output bit half the time."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)
