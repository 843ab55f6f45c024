"""Top-k, top-p and min-p: each keeps the tokens whose score reaches some floor, so the three become one number.

``x`` is a token's score below the best one, divided by the temperature: 0 for the best, and
``exp(x)`` is its probability relative to the best. Tokens that tie with the last one kept are kept.

Most floors lie among the few best tokens. Others are found by bisecting the floats.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from langchain_gemma_jax.engine.device.knobs import Knobs
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, ScoreShare

TOP = 128  # the largest top_k for which the few best tokens are enough
FEW = TOP + 1  # one more, so that a tie with the last one kept is detected
BLOCK = 64  # scores a block; the FEW best lie within the FEW blocks with the largest maxima
LANE = 128  # blocks side by side: the maxima of strided blocks are vector operations

MINUS_INFINITY_BITS = 0x7F800000  # without the sign


def best_few(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the best scores and their ids, descending: up to ``FEW`` of them.

    The order of equal scores is fixed but arbitrary, and so is the choice among scores that tie with the last one if
    there is no room for all. An id past the vocabulary can only come with -inf.
    """
    if scores.size <= 2 * FEW * BLOCK:
        return lax.top_k(scores, min(FEW, scores.size))
    tile = BLOCK * LANE
    tiles = jnp.pad(scores, (0, -scores.size % tile), constant_values=-jnp.inf).reshape(-1, BLOCK, LANE)
    _, blocks = lax.top_k(jnp.max(tiles, axis=1).reshape(-1), FEW)
    tile_of, lane_of = blocks // LANE, blocks % LANE
    values, places = lax.top_k(tiles[tile_of, :, lane_of].reshape(-1), FEW)
    block, depth = places // BLOCK, places % BLOCK
    return values, tile_of[block] * tile + depth * LANE + lane_of[block]


def floor_among_few(
    x: jax.Array,  # [few] descending, of the best tokens
    knobs: Knobs,
    total_mass: jax.Array,  # of the whole vocabulary; counts only if top-p works without top-k
) -> tuple[jax.Array, jax.Array]:
    """Return the floor according to the best tokens, and True if it is certain that no other token reaches it."""
    floats, top_k = knobs.named_floats(), knobs.named_ints().top_k
    in_reach = (top_k > 0) & (top_k <= TOP)
    kth = x[jnp.clip(top_k, 1, x.size) - 1]
    floor = jnp.where(in_reach, kth, -jnp.inf)
    mass = jnp.where(x >= floor, jnp.exp(x), 0.0)
    before = jnp.cumsum(mass) - mass
    total = jnp.where(in_reach, jnp.sum(mass), total_mass)
    crossed = before < floats.top_p * total
    last = jnp.min(jnp.where(crossed, x, 0.0))
    floor = jnp.where(floats.top_p < 1, jnp.maximum(floor, last), floor)
    floor = jnp.maximum(floor, jnp.log(floats.min_p))
    return floor, (top_k <= TOP) & ((floor > x[-1]) | (x[-1] == -jnp.inf))


def floor_of_all(x: jax.Array, knobs: Knobs, share: ScoreShare = EVERY_SCORE) -> jax.Array:
    """Return the floor, from all tokens: ``x`` is [vocab], at most 0, or a device's share of it."""
    floats, top_k = knobs.named_floats(), knobs.named_ints().top_k
    nothing = jnp.float32(-jnp.inf)
    ones = jnp.ones_like(x)
    floor = lax.cond(top_k > 0, lambda: _reaching(x, ones, top_k.astype(jnp.float32), share), lambda: nothing)
    mass = jnp.where(x >= floor, jnp.exp(x), 0.0)

    def of_mass() -> jax.Array:
        return _reaching(x, mass, floats.top_p * share.sum(mass), share)

    top_p = lax.cond(floats.top_p < 1, of_mass, lambda: nothing)
    return jnp.maximum(jnp.maximum(floor, top_p), jnp.log(floats.min_p))


def _reaching(x: jax.Array, weights: jax.Array, target: jax.Array, share: ScoreShare) -> jax.Array:
    """Return the largest floor at which the weights of ``x >= floor`` reach the target; -inf if none does.

    The order of the floats at or below 0 is the reverse order of their bits without the sign.
    """

    def floor(bits: jax.Array) -> jax.Array:
        return -lax.bitcast_convert_type(bits, jnp.float32)

    def halved(_: int, span: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = span
        middle = low + (high - low) // 2  # the sum of both would overflow
        enough = share.sum(jnp.where(x >= floor(middle), weights, 0.0)) >= target
        return jnp.where(enough, low, middle + 1), jnp.where(enough, middle, high)

    span = (jnp.int32(0), jnp.int32(MINUS_INFINITY_BITS))
    return floor(lax.fori_loop(0, 31, halved, span)[1])
