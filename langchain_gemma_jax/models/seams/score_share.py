"""Which scores of the next token a device has, and what it learns of those that others have.

Whoever picks a token asks a ``ScoreShare`` wherever all scores count. A device that has all of them asks
``EVERY_SCORE``, whose answers cost nothing: its programs are what they would be without. Of devices that share a
vocabulary each has the scores of its own tokens; what they tell each other is a number each, or their few best.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


class ScoreShare:
    """The share of a device that has every score. ``size`` is how many of them it has."""

    def ids(self, size: int) -> jax.Array:
        """The ids of its scores: int32, in order."""
        return jnp.arange(size, dtype=jnp.int32)

    def total(self, size: int) -> int:
        """How many scores there are on all devices."""
        return size

    def places(self, ids: jax.Array, size: int) -> jax.Array:  # noqa: ARG002  it has all
        """Where the scores of these ids are among its own; past the last one, if others have them."""
        return ids

    def own(self, of_all: jax.Array, size: int) -> jax.Array:  # noqa: ARG002  all are its own
        """The device's own part of numbers of which there is one for each id."""
        return of_all

    def best(
        self,
        values: jax.Array,
        places: jax.Array,
        size: int,  # noqa: ARG002  it has all
        most: int,  # noqa: ARG002
    ) -> tuple[jax.Array, jax.Array]:
        """The best scores of all devices, descending, and their ids: up to so many, from the best of its own."""
        return values, places

    def at(self, scores: jax.Array, ids: jax.Array) -> jax.Array:
        """The scores of these ids."""
        return scores[ids]

    def max(self, x: jax.Array, axis: int | None = None) -> jax.Array:
        """The largest of all devices' numbers, NaN if one is."""
        return largest(x, axis)

    def min(self, x: jax.Array) -> jax.Array:
        """The smallest of all devices' numbers."""
        return jnp.min(x)

    def sum(self, x: jax.Array) -> jax.Array:
        """The sum of all devices' numbers."""
        return jnp.sum(x)

    def any(self, x: jax.Array) -> jax.Array:
        """Whether any of all devices' truths holds."""
        return jnp.any(x)


def largest(x: jax.Array, axis: int | None = None) -> jax.Array:
    """The largest of some numbers, NaN if one is. XLA's own maximum of many overlooks that on CPUs."""
    found = jnp.max(x, axis)

    def looked_at() -> jax.Array:
        return jnp.where(jnp.any(jnp.isnan(x), axis), jnp.nan, found)

    one_may_be = jnp.any(jnp.isnan(jnp.sum(x, axis)))  # both infinities make NaN too. A sum costs least
    seen: jax.Array = jax.lax.cond(one_may_be, looked_at, lambda: found)
    return seen


EVERY_SCORE = ScoreShare()
