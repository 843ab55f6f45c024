"""Edits of a row's scores before a token is chosen: penalties, biases, the grammar, and ids that are no tokens."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from langchain_gemma_jax.engine.device.knobs import Knobs
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, ScoreShare

BAN = -100.0  # a bias this low bans the token
LOWEST = float(jnp.finfo(jnp.float32).min)


def legal_scores(
    scores: jax.Array,  # [vocab] float32
    knobs: Knobs,
    history: jax.Array,  # [slot] int32
    position: jax.Array,
    allowed: jax.Array,  # [word] uint32
    valid_vocab: int,
    masked: jax.Array,  # bool: there is a grammar, and ``allowed`` applies
    share: ScoreShare = EVERY_SCORE,  # the part of the scores that this device has
) -> tuple[jax.Array, jax.Array]:
    """Return the edited scores, -inf where a token is illegal, and the best of them, which is finite.

    NaN counts as -inf, and +inf as the largest float. If no finite score remains, the raw scores decide among the
    tokens that the grammar allows (a bias gives way to the grammar), or among all if it allows none.
    """
    penalized, biased = _is_penalized(knobs), knobs.named_ints().biases > 0
    ids, size = share.ids(scores.size), scores.size
    known = scores if valid_vocab >= share.total(size) else jnp.where(ids < valid_vocab, scores, -jnp.inf)
    best = share.max(known)

    def edited() -> tuple[jax.Array, jax.Array]:
        legal = jnp.where(masked, share.own(_bits(allowed, share.total(size)), size), True) & (ids < valid_vocab)
        row = lax.cond(penalized, lambda: _penalized(scores, knobs, history, position, share), lambda: scores)
        row = lax.cond(biased, lambda: _biased(row, knobs, share), lambda: row)
        row = jnp.where(legal, jnp.nan_to_num(row, nan=-jnp.inf, neginf=-jnp.inf), -jnp.inf)
        row = lax.cond(share.max(row) > -jnp.inf, lambda: row, lambda: _rescued(scores, legal, valid_vocab, share))
        return row, share.max(row)

    result: tuple[jax.Array, jax.Array] = lax.cond(
        penalized | biased | masked | ~jnp.isfinite(best), edited, lambda: (known, best)
    )
    return result


def is_edited(knobs: Knobs) -> jax.Array:
    """Return True if a request has penalties or biases, which change the model's scores."""
    return _is_penalized(knobs) | (knobs.named_ints().biases > 0)


def _is_penalized(knobs: Knobs) -> jax.Array:
    floats = knobs.named_floats()
    return (floats.repetition != 1) | (floats.presence != 0) | (floats.frequency != 0)


def _penalized(
    scores: jax.Array, knobs: Knobs, history: jax.Array, position: jax.Array, share: ScoreShare
) -> jax.Array:
    floats, ints = knobs.named_floats(), knobs.named_ints()
    slots = jnp.arange(history.size, dtype=jnp.int32)
    held = slots < position
    seen = _counts(history, held, scores.size, share)
    generated = _counts(history, held & (slots >= ints.prompt_length), scores.size, share)
    pushed = jnp.where(scores > 0, scores / floats.repetition, scores * floats.repetition)
    row = jnp.where(seen > 0, pushed, scores)
    return row - jnp.where(generated > 0, floats.presence, 0.0) - floats.frequency * generated


def _counts(history: jax.Array, counted: jax.Array, size: int, share: ScoreShare) -> jax.Array:
    """Return the number of times that each id is at the counted slots: float32, exact below 2**24."""
    places = jnp.where(counted, share.places(history, size), size)
    return jnp.zeros(size, jnp.float32).at[places].add(1.0, mode="drop")


def _biased(row: jax.Array, knobs: Knobs, share: ScoreShare) -> jax.Array:
    values = jnp.where(knobs.bias_values <= BAN, -jnp.inf, knobs.bias_values)
    return row.at[share.places(knobs.bias_ids, row.size)].add(values, mode="drop")


def _bits(words: jax.Array, count: int) -> jax.Array:
    shifts = jnp.arange(32, dtype=jnp.uint32)
    return ((words[:, None] >> shifts[None, :]) & 1 != 0).reshape(-1)[:count]


def _rescued(scores: jax.Array, legal: jax.Array, valid_vocab: int, share: ScoreShare) -> jax.Array:
    """Return the raw scores, finite for all tokens that may be chosen."""
    finite = jnp.nan_to_num(scores, nan=LOWEST)
    return jnp.where(jnp.where(share.any(legal), legal, share.ids(scores.size) < valid_vocab), finite, -jnp.inf)
