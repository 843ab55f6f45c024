"""One device's share of the next token's scores, and reductions over the shares of all devices.

Sampling code goes through a ``ScoreShare`` wherever it needs all scores. On a device that has them all this is
``EVERY_SCORE``, which adds no operation to a program. Where devices divide the vocabulary, each has the scores of its
own tokens, and they exchange one number each, or their few best.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


class ScoreShare:
    """The share of a device that has every score. ``size`` is always the number of scores on this device."""

    def ids(self, size: int) -> jax.Array:
        """Return the ids of this device's scores: int32, in order."""
        return jnp.arange(size, dtype=jnp.int32)

    def total(self, size: int) -> int:
        """Return the number of scores on all devices together."""
        return size

    def places(self, ids: jax.Array, size: int) -> jax.Array:  # noqa: ARG002  it has all
        """Return the index of each id among this device's scores; ``size`` for an id that another device has."""
        return ids

    def own(self, of_all: jax.Array, size: int) -> jax.Array:  # noqa: ARG002  all are its own
        """Return this device's part of an array with one number per id."""
        return of_all

    def best(
        self,
        values: jax.Array,
        places: jax.Array,
        size: int,  # noqa: ARG002  it has all
        most: int,  # noqa: ARG002
    ) -> tuple[jax.Array, jax.Array]:
        """Return up to ``most`` best scores of all devices, descending, and their ids.

        ``values`` and ``places`` are the best of this device, and their indices.
        """
        return values, places

    def at(self, scores: jax.Array, ids: jax.Array) -> jax.Array:
        """Return the scores of these ids, whichever device has them."""
        return scores[ids]

    def max(self, x: jax.Array, axis: int | None = None) -> jax.Array:
        """Return the largest number on any device; NaN if one is NaN."""
        return largest(x, axis)

    def min(self, x: jax.Array) -> jax.Array:
        """Return the smallest number on any device."""
        return jnp.min(x)

    def sum(self, x: jax.Array) -> jax.Array:
        """Return the sum of the numbers of all devices."""
        return jnp.sum(x)

    def any(self, x: jax.Array) -> jax.Array:
        """Return True if any value on any device is true."""
        return jnp.any(x)


def largest(x: jax.Array, axis: int | None = None) -> jax.Array:
    """Return the largest number; NaN if one is NaN. On CPUs, XLA's own maximum of many numbers can miss a NaN."""
    maximum = jnp.max(x, axis)

    def looked_at() -> jax.Array:
        return jnp.where(jnp.any(jnp.isnan(x), axis), jnp.nan, maximum)

    one_may_be = jnp.any(jnp.isnan(jnp.sum(x, axis)))  # the cheapest test. Infinities of both signs sum to NaN too
    seen: jax.Array = jax.lax.cond(one_may_be, looked_at, lambda: maximum)
    return seen


EVERY_SCORE = ScoreShare()
