"""Sampling on the device: from scores to tokens.

A token is drawn by taking the largest of score + Gumbel noise. The noise is a function of (seed, position, token id)
alone. Each id has its own noise, so the draw does not depend on the batch, on the way it was computed, or on which
other ids can be drawn.

Rows are processed one after the other with branches of their own, so a row costs only what its options need: the best
token of a greedy row takes little more than one pass over its scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

from langchain_gemma_jax.engine.device.filters import FEW, best_few, floor_among_few, floor_of_all
from langchain_gemma_jax.engine.device.knobs import OF_NONE, OF_THE_BEST, OF_THE_BIASED, OF_THE_TOKEN, Knobs
from langchain_gemma_jax.engine.device.logit_edits import is_edited, legal_scores
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, ScoreShare

# The float32 just below 1: the largest v for which log(1 - v) is finite.
BELOW_ONE = 1 - 2.0**-24


def key_at(seed: jax.Array, position: jax.Array) -> jax.Array:
    """Return the key, uint32 [2], of the token at a position: a Threefry of both, so neighbors are independent."""
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


TOP_LOGPROBS = 20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Picked:
    """One token a row, with the logprobs that the row asks for; zeros for others."""

    tokens: jax.Array  # [row] int32
    logprobs: jax.Array  # [row] float32
    top_ids: jax.Array  # [row, 20] int32, best first, the lower id first among equals; or the ids that have a bias
    top_logprobs: jax.Array  # [row, 20] float32; -inf, with any id, if the vocabulary has no more


def pick(
    scores: jax.Array,  # [row, vocab] float32
    knobs: Knobs,  # [row, ...]
    history: jax.Array,  # [row, slot] int32: tokens by position
    positions: jax.Array,  # [row] int32: of the token to pick; only the history before it is read
    allowed: jax.Array,  # [row, word] uint32: bit i % 32 of word i // 32, for rows with a grammar
    valid_vocab: int,
    best: tuple[jax.Array, jax.Array] | None = None,  # [row] each: the best valid score, and its lowest id
    share: ScoreShare = EVERY_SCORE,  # the part of the scores that this device has
) -> Picked:
    """Pick the next token of each row; ids from ``valid_vocab`` on are never picked.

    With ``best``, which a kernel may have computed already, a greedy row without penalties needs no pass over its
    scores. A row with NaN has NaN there.

    Logprobs are those of the raw scores. Then, in this order: repetition, presence and frequency penalty,
    bias, temperature, top-k, top-p, min-p; tokens that tie with the last one kept are kept. At temperature 0
    the best token is taken, the lowest id among equals. A draw is a function of seed, position, and the
    row's own scores: the same alone, in a batch and on a draft.

    A token that the grammar does not allow is drawn again among those that it allows. So a legal draw without the mask
    equals the draw with the mask, and the mask can be skipped.

    For any scores, NaN included, an id in range is returned: ``legal_scores`` says which.
    """

    def one(row: tuple[jax.Array, Knobs, jax.Array, jax.Array, jax.Array, tuple[jax.Array, ...]]) -> Picked:
        return _pick_one(*row, valid_vocab=valid_vocab, share=share)

    rows = (scores, knobs, history, positions, allowed, best or ())
    if scores.shape[0] > 1:
        picked: Picked = lax.map(one, rows)
        return picked
    only = one(jax.tree.map(lambda array: array[0], rows))
    alone: Picked = jax.tree.map(lambda array: array[None], only)
    return alone


def best_is_enough(
    knobs: Knobs,  # [row, ...]
    best: tuple[jax.Array, jax.Array],  # [row] each
    allowed: jax.Array,  # [row, word] uint32
    real: jax.Array,  # int32: the number of rows before the unused ones
) -> jax.Array:
    """Return True if each row takes its best token, and no row asks for more: then no row's scores are looked at."""

    def enough(knobs: Knobs, best: tuple[jax.Array, jax.Array], allowed: jax.Array) -> jax.Array:
        plain = _is_plain(knobs, best) & (knobs.named_ints().logprobs == OF_NONE)
        return plain & ~_is_illegal(best[1], knobs, allowed)

    rows = jax.vmap(enough)(knobs, best, allowed)
    return jnp.all(rows | (jnp.arange(rows.size, dtype=jnp.int32) >= real))


def the_best(best: tuple[jax.Array, jax.Array]) -> Picked:
    """Return the best token of each row, where ``best_is_enough``."""
    rows = best[1].size
    nothing = jnp.zeros((rows, TOP_LOGPROBS), jnp.float32)
    return Picked(best[1], nothing[:, 0], nothing.astype(jnp.int32), nothing)


def _is_plain(knobs: Knobs, best: tuple[jax.Array, ...]) -> jax.Array:
    """Return True if a row without a grammar takes the best of its scores."""
    return (knobs.named_floats().temperature <= 0) & ~is_edited(knobs) & jnp.isfinite(best[0])


def _is_illegal(token: jax.Array, knobs: Knobs, allowed: jax.Array) -> jax.Array:
    bit = (allowed[token // 32] >> (token % 32).astype(jnp.uint32)) & 1
    return (knobs.named_ints().masked > 0) & (bit == 0)


def _pick_one(
    scores: jax.Array,
    knobs: Knobs,
    history: jax.Array,
    position: jax.Array,
    allowed: jax.Array,
    best: tuple[jax.Array, ...],
    *,
    valid_vocab: int,
    share: ScoreShare,
) -> Picked:
    def drawn(masked: jax.Array) -> jax.Array:
        row, best = legal_scores(scores, knobs, history, position, allowed, valid_vocab, masked, share)
        token: jax.Array = lax.cond(
            knobs.named_floats().temperature > 0,
            lambda: _draw(row, best, knobs, key_at(knobs.seed, position), share),
            lambda: _first(row, best, share.ids(row.size), share),
        )
        return token

    def draw(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        _, masked, _ = state
        token = drawn(masked)
        return token, jnp.bool_(True), ~masked & _is_illegal(token, knobs, allowed)

    # A loop of two rounds at most, the second with the mask. Without a loop the drawing would be compiled twice.
    plain, token = jnp.bool_(False), jnp.int32(0)
    if best:
        plain, token = _is_plain(knobs, best), best[1]
    begin = token, plain, ~plain | _is_illegal(token, knobs, allowed)
    token, _, _ = lax.while_loop(lambda state: state[2], draw, begin)
    nothing = (jnp.float32(0), jnp.zeros(TOP_LOGPROBS, jnp.int32), jnp.zeros(TOP_LOGPROBS, jnp.float32))
    ways = {
        OF_NONE: lambda: nothing,
        OF_THE_BEST: lambda: _logprobs(scores, token, valid_vocab, share),
        OF_THE_TOKEN: lambda: (share.at(scores, token) - _shift(scores, share), *nothing[1:]),
        OF_THE_BIASED: lambda: _of_the_biased(scores, token, knobs, valid_vocab, share),
    }
    return Picked(token, *lax.switch(knobs.named_ints().logprobs, [ways[way] for way in sorted(ways)]))


def _first(values: jax.Array, best: jax.Array, ids: jax.Array, share: ScoreShare) -> jax.Array:
    """Return the lowest id with the best value; on a CPU, XLA's own argmax takes ten times as long."""
    return share.min(jnp.where(values == best, ids, jnp.iinfo(jnp.int32).max))


def _draw(row: jax.Array, best: jax.Array, knobs: Knobs, key: jax.Array, share: ScoreShare) -> jax.Array:
    """Draw a token among those that the filters keep: from the few best if they are enough, otherwise from all.

    Both ways give the same token, and the few best are nearly always enough.
    """
    floats, top_k = knobs.named_floats(), knobs.named_ints().top_k

    def relative(scores: jax.Array) -> jax.Array:
        return (scores - best) / floats.temperature

    def drawn(x: jax.Array, ids: jax.Array, floor: jax.Array, among: ScoreShare) -> jax.Array:
        noisy = jnp.where(x >= floor, x + gumbel(key, ids), -jnp.inf)
        return _first(noisy, among.max(noisy), ids, among)

    def from_all() -> jax.Array:
        x = relative(row)
        return drawn(x, share.ids(row.size), floor_of_all(x, knobs, share), share)

    few, ids = share.best(*best_few(row), row.size, FEW)  # each device has all of these
    x = relative(few)
    mass_counts = (floats.top_p < 1) & (top_k == 0)
    total = lax.cond(mass_counts, lambda: share.sum(jnp.exp(relative(row))), lambda: jnp.float32(0))
    floor, enough = floor_among_few(x, knobs, total)
    token: jax.Array = lax.cond(enough, lambda: drawn(x, ids, floor, EVERY_SCORE), from_all)
    return token


def _logprobs(
    scores: jax.Array, token: jax.Array, valid_vocab: int, share: ScoreShare
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the log probability of the token, the best valid ids and theirs; normalized over all scores."""
    shift = _shift(scores, share)
    known = jnp.where(share.ids(scores.size) < valid_vocab, scores, -jnp.inf)
    few, ids = share.best(*best_few(known), known.size, FEW)
    descending, ids = lax.sort((-few, ids), num_keys=2)
    missing = max(0, TOP_LOGPROBS - few.size)
    values = -jnp.pad(descending[:TOP_LOGPROBS], (0, missing), constant_values=jnp.inf)
    ids = jnp.minimum(jnp.pad(ids[:TOP_LOGPROBS], (0, missing)), valid_vocab - 1)
    return share.at(scores, token) - shift, ids, values - shift


def _of_the_biased(
    scores: jax.Array, token: jax.Array, knobs: Knobs, valid_vocab: int, share: ScoreShare
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the log probability of the token, the first ids that have a bias, and theirs."""
    shift, ids = _shift(scores, share), jnp.minimum(knobs.bias_ids[:TOP_LOGPROBS], valid_vocab - 1)
    return share.at(scores, token) - shift, ids, share.at(scores, ids) - shift


def _shift(scores: jax.Array, share: ScoreShare) -> jax.Array:
    """Return the number to subtract from scores to get log probabilities."""
    best = share.max(scores)
    return best + jnp.log(share.sum(jnp.exp(scores - best)))
